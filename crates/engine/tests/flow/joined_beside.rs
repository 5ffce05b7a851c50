//! Destinations in front of a join: they get rows of one side alone, in the same pass.
