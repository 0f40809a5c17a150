//! Writes the documents that describe printed JSON: `docs/*.schema.json`.

use std::path::Path;

fn main() -> std::io::Result<()> {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for (path, text) in ompfuse_report::view::schema::documents() {
        std::fs::write(repository.join(path), text)?;
    }
    Ok(())
}
