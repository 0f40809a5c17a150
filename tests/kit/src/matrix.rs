//! `fixtures/matrix.toml`: compilers, ways to link, numbers of threads.

use serde::Deserialize;
use std::sync::LazyLock;

pub use crate::tools::version;

/// The whole file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Matrix {
    /// Numbers of threads.
    pub threads: Vec<usize>,
    /// Levels of optimisation whose builds exist without a symbol table too.
    pub stripped: Vec<String>,
    /// Compilers.
    #[serde(rename = "compiler")]
    pub compilers: Vec<Compiler>,
    /// Ways to compile and link.
    #[serde(rename = "link")]
    pub links: Vec<Link>,
    /// Compilers of the large matrix.
    #[serde(rename = "version")]
    pub versions: Vec<Compiler>,
    /// Ways to compile and link of the large matrix: every level with every set of flags.
    pub levels: Vec<String>,
    /// Their sets of flags.
    #[serde(rename = "flags")]
    pub sets: Vec<Link>,
}

/// A compiler, with a command per language.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Compiler {
    /// What the tests call it.
    pub name: String,
    /// The compiler whose directives in fixtures are meant for it too; itself by default.
    pub family: Option<String>,
    /// Its command for C.
    pub c: Option<String>,
    /// ... for C++.
    pub cpp: Option<String>,
    /// ... for Fortran.
    pub f90: Option<String>,
    /// Flags that it always needs.
    #[serde(default)]
    pub flags: Vec<String>,
    /// Levels and sets of flags that it doesn't have.
    #[serde(default)]
    pub without: Vec<String>,
    /// Fixtures that it can't build right.
    #[serde(default)]
    pub fixtures_without: Vec<String>,
    /// Flags that are left out of the sets that it has.
    #[serde(default)]
    pub unknown: Vec<String>,
}

/// A way to compile and link.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// What the tests call it.
    pub name: String,
    /// Flags.
    pub flags: Vec<String>,
    /// Levels of optimisation that go with it.
    #[serde(default)]
    pub optimisations: Vec<String>,
    /// Words of `/proc/cpuinfo` without which what it builds doesn't run.
    #[serde(default)]
    pub needs: Vec<String>,
}

static MATRIX: LazyLock<Matrix> = LazyLock::new(|| {
    let path = crate::repository().join("fixtures/matrix.toml");
    let text = std::fs::read_to_string(&path)
        .unwrap_or_else(|e| panic!("cannot read {}: {e}", path.display()));
    toml::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
});

impl Matrix {
    /// The matrix of this repository.
    pub fn get() -> &'static Matrix {
        &MATRIX
    }

    /// What most builds are run with: more threads than two processors have, and an odd number, so that work isn't dealt evenly.
    pub fn ordinary_threads(&self) -> usize {
        self.threads[self.threads.len() / 2]
    }

    /// The least and the largest number of threads.
    pub fn ends(&self) -> [usize; 2] {
        [self.threads[0], self.threads[self.threads.len() - 1]]
    }

    /// The compiler of this name.
    pub fn compiler(&'static self, name: &str) -> &'static Compiler {
        self.compilers
            .iter()
            .find(|c| c.name == name)
            .unwrap_or_else(|| panic!("no compiler {name} in matrix.toml"))
    }

    /// The way to link of this name.
    pub fn link(&'static self, name: &str) -> &'static Link {
        self.links
            .iter()
            .find(|l| l.name == name)
            .unwrap_or_else(|| panic!("no link {name} in matrix.toml"))
    }
}

/// The flags that a compiler always needs, by its command.
pub fn flags_of(command: &str) -> &'static [String] {
    let is_it = |c: &&Compiler| [&c.c, &c.cpp, &c.f90].contains(&&Some(command.to_owned()));
    let found = Matrix::get().versions.iter().find(is_it);
    found.map_or(&[], |compiler| &compiler.flags)
}

impl Link {
    /// What the machine lacks to run what it builds.
    pub fn lacks(&self) -> Option<&str> {
        static KNOWN: LazyLock<String> =
            LazyLock::new(|| std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default());
        let has = |word: &str| KNOWN.split_whitespace().any(|w| w == word);
        self.needs.iter().map(String::as_str).find(|w| !has(w))
    }
}

impl Compiler {
    /// The name that directives in fixtures use for it.
    pub fn family(&self) -> &str {
        self.family.as_deref().unwrap_or(&self.name)
    }

    /// The command for a source file with this extension, `None` if this compiler has no such language.
    pub fn command(&self, extension: &str) -> Option<&str> {
        match extension {
            "c" => self.c.as_deref(),
            "cpp" => self.cpp.as_deref(),
            "f90" => self.f90.as_deref(),
            _ => panic!("no language has sources *.{extension}"),
        }
    }
}
