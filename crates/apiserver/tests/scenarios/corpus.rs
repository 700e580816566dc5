//! The inputs of the fuzz target `request`, each sent once.

#[path = "../../../../fuzz/fuzz_targets/request/world.rs"]
mod world;

use std::path::Path;

#[test]
fn no_input_of_the_corpus_gets_an_error_of_the_server() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/request");
    let world = world::World::new();
    let mut inputs = 0;
    for entry in corpus.read_dir().unwrap() {
        let path = entry.unwrap().path();
        println!("{}", path.display());
        world.check(&std::fs::read(path).unwrap());
        inputs += 1;
    }
    assert!(inputs >= 8, "{inputs} inputs in {}", corpus.display());
}
