//! C (and C++) of a drawn program.

use super::fragments::{EPILOGUE, PROLOGUE, head, work};
use super::program::{Form, Kind, Part, Program, Range};
use std::fmt::Write;

/// Writes it.
pub(super) fn source(program: &Program) -> String {
    let mut out = Source {
        text: PROLOGUE.to_owned(),
        depth: 0,
    };
    let lists = program.functions.iter().chain([&program.main]);
    for list in lists.clone() {
        out.variables(list);
    }
    for (number, body) in program.functions.iter().enumerate() {
        out.line(&format!(
            "__attribute__((noinline)) void f{number}(unsigned long x) {{"
        ));
        out.list(body);
        out.line("}");
    }
    out.line("int main(void) {");
    out.line("omp_set_max_active_levels(2);");
    out.line("unsigned long x = 5 + zero;");
    for list in lists.clone() {
        out.locks(list);
    }
    out.list(&program.main);
    for list in lists {
        out.sums(list);
    }
    out.text.push_str(EPILOGUE);
    out.text
}

/// Every part of a list, outer ones first.
fn each<'p>(list: &'p [Part], see: &mut dyn FnMut(&'p Part)) {
    for part in list {
        see(part);
        for body in &part.bodies {
            each(body, see);
        }
    }
}

/// Loops that reduce or keep a variable of this `parallel`.
fn owned<'p>(list: &'p [Part], see: &mut dyn FnMut(&'p Part, &'p Range)) {
    for part in list {
        match &part.form {
            Form::Loop(kind, range) if *kind != Kind::ParallelFor => see(part, range),
            Form::Repeat(_) | Form::When | Form::Throw => owned(&part.bodies[0], see),
            _ => {}
        }
    }
}

struct Source {
    text: String,
    depth: usize,
}

impl Source {
    fn line(&mut self, text: &str) {
        self.depth -= usize::from(text.starts_with('}'));
        let indent = match text.starts_with('#') {
            true => 0,
            false => 2 * self.depth,
        };
        writeln!(self.text, "{:indent$}{text}", "").expect("a string takes everything");
        self.depth += usize::from(text.ends_with('{'));
    }

    /// Variables of the whole program.
    fn variables(&mut self, list: &[Part]) {
        each(list, &mut |part| {
            let id = part.id;
            match part.form {
                Form::Critical => self.line(&format!("static unsigned long guarded_{id};")),
                Form::Lock => {
                    self.line(&format!("static unsigned long guarded_{id};"));
                    self.line(&format!("static omp_lock_t lock_{id};"));
                }
                Form::Loop(Kind::Ordered, _) => {
                    self.line(&format!("static unsigned long chain_{id};"));
                }
                _ => {}
            }
        });
    }

    fn locks(&mut self, list: &[Part]) {
        each(list, &mut |part| {
            if part.form == Form::Lock {
                self.line(&format!("omp_init_lock(&lock_{});", part.id));
            }
        });
    }

    fn sums(&mut self, list: &[Part]) {
        each(list, &mut |part| {
            let id = part.id;
            match part.form {
                Form::Critical | Form::Lock => self.line(&format!("add({id}, guarded_{id});")),
                Form::Loop(Kind::Ordered, _) => self.line(&format!("add({id}, chain_{id});")),
                _ => {}
            }
        });
    }

    fn list(&mut self, list: &[Part]) {
        for part in list {
            self.part(part);
        }
    }

    /// A block in which `x` has this value.
    fn with(&mut self, id: usize, value: &str, inner: &mut dyn FnMut(&mut Source)) {
        self.line(&format!("unsigned long y{id} = {value};"));
        self.line("{");
        self.line(&format!("unsigned long x = y{id};"));
        inner(self);
        self.line("}");
    }

    fn part(&mut self, part: &Part) {
        let id = part.id;
        let clauses = part.clauses.join(" ");
        let body = part.bodies.first().map_or(&[][..], |b| &b[..]);
        match &part.form {
            Form::Work(variant) => {
                for line in work(id, *variant) {
                    self.line(&line);
                }
            }
            Form::Repeat(times) => {
                self.line(&format!("for (int k = 0; k < K({times}); k++) {{"));
                self.with(id, &format!("x * 7 + k + {id}"), &mut |s| s.list(body));
                self.line("}");
            }
            Form::When => {
                self.line(&format!("if ((x + {id}) % 4 != 1) {{"));
                self.list(body);
                self.line("}");
            }
            Form::Throw => {
                self.line("TRY {");
                self.list(body);
                self.line(&format!("if ((x + {id}) & 1) THROW(x & 15);"));
                self.line(&format!("}} CATCH({id})"));
            }
            Form::Call(function) => self.line(&format!("f{function}(x + {id});")),
            Form::Parallel => self.team(id, body, &mut |s| {
                s.line(&format!("#pragma omp parallel {clauses}"));
                s.line("{");
                s.list(body);
                s.line("}");
            }),
            Form::Loop(kind, range) => self.divided(part, *kind, range, &clauses),
            Form::Sections(combined) => self.sections(part, *combined, &clauses),
            Form::Single(copies) => self.single(id, *copies, &clauses, body),
            Form::Master => self.block("#pragma omp master", body),
            Form::Critical => {
                self.line(&format!("#pragma omp critical(name_{id})"));
                self.guarded(id, body);
            }
            Form::Lock => {
                self.line(&format!("omp_set_lock(&lock_{id});"));
                self.guarded(id, body);
                self.line(&format!("omp_unset_lock(&lock_{id});"));
            }
            Form::Barrier => self.line("#pragma omp barrier"),
            Form::Taskwait => self.line("#pragma omp taskwait"),
            Form::Taskgroup => self.block("#pragma omp taskgroup", body),
            Form::Task => {
                self.line(&format!("#pragma omp task {clauses}"));
                self.line("{");
                self.line("count(&tasks, 1);");
                self.list(body);
                self.line("}");
            }
            Form::Chain(tasks) => {
                let directive = format!("task depend(inout: d{id}) shared(d{id})");
                self.line("{");
                self.line(&format!("unsigned long d{id} = x;"));
                self.tasks(
                    *tasks,
                    &directive,
                    &format!("d{id} = d{id} * 31 + k;"),
                    body,
                );
                self.line("#pragma omp taskwait");
                self.line(&format!("add({id}, d{id});"));
                self.line("}");
            }
            Form::Reducing(tasks) => {
                let directive = format!("task in_reduction(+: r{id})");
                self.line("{");
                self.line(&format!("unsigned long r{id} = 0;"));
                self.line(&format!("#pragma omp taskgroup task_reduction(+: r{id})"));
                self.line("{");
                self.tasks(*tasks, &directive, &format!("r{id} += x * 3 + k;"), body);
                self.line("}");
                self.line(&format!("add({id}, r{id});"));
                self.line("}");
            }
        }
    }

    fn sections(&mut self, part: &Part, is_combined: bool, clauses: &str) {
        let combined = if is_combined { "parallel " } else { "" };
        self.line(&format!("#pragma omp {combined}sections {clauses}"));
        self.line("{");
        for section in &part.bodies {
            self.line("#pragma omp section");
            self.line("{");
            self.line("count(&sections, 1);");
            self.list(section);
            self.line("}");
        }
        self.line("}");
    }

    fn single(&mut self, id: usize, copies: bool, clauses: &str, body: &[Part]) {
        self.line("{");
        self.line(&format!("unsigned long c{id} = 0;"));
        let copied = if copies {
            format!("copyprivate(c{id})")
        } else {
            String::new()
        };
        self.line(&format!("#pragma omp single {clauses} {copied}"));
        self.line("{");
        self.list(body);
        self.line(&format!("c{id} = x * 3;"));
        self.line("}");
        if copies {
            self.line(&format!("add({id}, c{id});"));
        }
        self.line("}");
    }

    /// So many tasks, each with a statement that may use its number, `k`.
    fn tasks(&mut self, tasks: usize, directive: &str, statement: &str, body: &[Part]) {
        self.line(&format!("for (int k = 0; k < K({tasks}); k++) {{"));
        self.line(&format!("#pragma omp {directive} firstprivate(k)"));
        self.line("{");
        self.line("count(&tasks, 1);");
        self.line(statement);
        self.list(body);
        self.line("}");
        self.line("}");
    }

    fn block(&mut self, directive: &str, body: &[Part]) {
        self.line(directive);
        self.line("{");
        self.list(body);
        self.line("}");
    }

    fn guarded(&mut self, id: usize, body: &[Part]) {
        self.line("{");
        self.line(&format!("guarded_{id} += x + 1;"));
        self.list(body);
        self.line("}");
    }

    /// A `parallel` with the variables that loops in it reduce or keep.
    fn team(&mut self, id: usize, body: &[Part], inner: &mut dyn FnMut(&mut Source)) {
        let mut variables = Vec::new();
        owned(body, &mut |part, range| {
            variables.extend(range.reduces.then(|| format!("r{}", part.id)));
            variables.extend(range.lasts.then(|| format!("l{}", part.id)));
        });
        self.line("{");
        for name in &variables {
            self.line(&format!("unsigned long {name} = 0;"));
        }
        inner(self);
        for name in &variables {
            self.line(&format!("add({id}, {name});"));
        }
        self.line("}");
    }

    fn divided(&mut self, part: &Part, kind: Kind, range: &Range, clauses: &str) {
        let id = part.id;
        let mut clauses = clauses.to_owned();
        if range.reduces {
            write!(clauses, " reduction(+: r{id})").expect("a string takes everything");
        }
        if range.lasts {
            write!(clauses, " lastprivate(l{id})").expect("a string takes everything");
        }
        if range.inner.is_some() {
            clauses.push_str(" collapse(2)");
        }
        self.line("{");
        if kind == Kind::ParallelFor {
            for (wanted, name) in [(range.reduces, "r"), (range.lasts, "l")] {
                if wanted {
                    self.line(&format!("unsigned long {name}{id} = 0;"));
                }
            }
        }
        if let Kind::Taskloop(tasks) = kind {
            let all = range.count * range.inner.unwrap_or(1);
            self.line(&format!("count(&tasks, {});", tasks.min(all)));
        }
        let name = match kind {
            Kind::For | Kind::Ordered => "for",
            Kind::ParallelFor => "parallel for",
            Kind::Taskloop(_) => "taskloop",
        };
        self.line(&format!("#pragma omp {name} {clauses}"));
        self.line(&format!(
            "{} {{",
            head(range, "i", range.count, range.style)
        ));
        if let Some(inner) = range.inner {
            self.line(&format!("{} {{", head(range, "j", inner, range.style / 2)));
        }
        if !matches!(kind, Kind::Taskloop(_)) {
            self.line("count(&iterations, 1);");
        }
        let second = if range.inner.is_some() {
            " + (unsigned long)j * 5"
        } else {
            ""
        };
        let value = format!("x * 31 + (unsigned long)i{second}");
        self.with(id, &value, &mut |s| {
            if range.reduces {
                s.line(&format!("r{id} += x;"));
            }
            if range.lasts {
                s.line(&format!("l{id} = (unsigned long)i * 7 + {id};"));
            }
            s.list(&part.bodies[0]);
            if kind == Kind::Ordered {
                s.line("#pragma omp ordered");
                s.line(&format!("chain_{id} = chain_{id} * 31 + x;"));
            }
        });
        if range.inner.is_some() {
            self.line("}");
        }
        self.line("}");
        if kind == Kind::ParallelFor {
            for (wanted, name) in [(range.reduces, "r"), (range.lasts, "l")] {
                if wanted {
                    self.line(&format!("add({id}, {name}{id});"));
                }
            }
        }
        self.line("}");
    }
}
