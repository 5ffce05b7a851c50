//! Rate of the generator on one core: `cargo run --release --example rate -- [SCALE]`.

use std::time::Instant;

use headrace_generate::{GenerateError, TpchTable, TpchText};

fn main() -> Result<(), GenerateError> {
    let scale = std::env::args().nth(1).and_then(|scale| scale.parse().ok()).unwrap_or(1.0);
    let start = Instant::now();
    TpchText::new(TpchTable::Lineitem, scale, 1, 1)?;
    println!("text pool: {:.2} s", start.elapsed().as_secs_f64());
    for table in &TpchTable::ALL[2..] {
        let start = Instant::now();
        let mut text = TpchText::new(*table, scale, 1, 1)?;
        let (mut buffer, mut bytes, mut ended) = (Vec::new(), 0, false);
        while !ended {
            buffer.clear();
            let filled = text.fill(&mut buffer, 1 << 20);
            bytes += filled.bytes;
            ended = filled.ended;
        }
        let seconds = start.elapsed().as_secs_f64();
        println!(
            "{:8} {:9} rows {:11} bytes {:6.0} MB/s",
            table,
            text.rows_produced(),
            bytes,
            bytes as f64 / 1e6 / seconds
        );
    }
    Ok(())
}
