"""What runs in processes of their own, beside Headrace: started by path, so nothing here imports anything heavy."""
