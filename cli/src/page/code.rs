//! The machine code at sites, as the program has it before it is patched.

use goblin::elf::Elf;
use goblin::elf::program_header::PT_LOAD;
use iced_x86::{Decoder, DecoderOptions, Formatter, IntelFormatter};
use ompfuse_account::Report;
use ompfuse_report::view::html::Code;
use std::path::Path;

use crate::input;

/// Instructions of a site that are shown.
const SHOWN: usize = 10;
/// Sites with code on a page.
const SITES: usize = 400;

/// The instructions at a report's sites. Of modules that aren't there any more, or are another build, there are none.
pub(super) fn code(report: &Report) -> Code {
    let mut code = Code::new();
    for module in &report.modules {
        let name = module.build_id.as_ref().unwrap_or(&module.path);
        let is_here = |m: &Option<String>| m.as_ref() == Some(name);
        let Ok(bytes) = input::map(Path::new(&module.path)) else {
            continue;
        };
        let Ok(elf) = Elf::parse(&bytes) else {
            continue;
        };
        if module.build_id.is_some() && build_id(&elf, &bytes) != module.build_id {
            continue;
        }
        for region in report.regions.iter().filter(|r| is_here(&r.module)) {
            let Some(address) = region.address.filter(|_| code.len() < SITES) else {
                continue;
            };
            if let Some(lines) = lines(&elf, &bytes, address.0) {
                code.insert((name.clone(), region.name.clone()), lines);
            }
        }
    }
    code
}

fn build_id(elf: &Elf<'_>, bytes: &[u8]) -> Option<String> {
    let notes = elf.iter_note_headers(bytes)?;
    let mut notes = notes.flatten();
    let found =
        notes.find(|n| n.name == "GNU" && n.n_type == goblin::elf::note::NT_GNU_BUILD_ID)?;
    Some(found.desc.iter().map(|b| format!("{b:02x}")).collect())
}

/// Instructions from an address on, each with its own.
fn lines(elf: &Elf<'_>, bytes: &[u8], address: u64) -> Option<Vec<String>> {
    let mut loaded = elf.program_headers.iter().filter(|h| h.p_type == PT_LOAD);
    let segment = loaded.find(|h| h.vm_range().contains(&(address as usize)))?;
    let from = usize::try_from(segment.p_offset + (address - segment.p_vaddr)).ok()?;
    let to = usize::try_from(segment.p_offset + segment.p_filesz).ok()?;
    let code = bytes.get(from..to.min(bytes.len()))?;
    let mut decoder = Decoder::with_ip(64, code, address, DecoderOptions::NONE);
    let mut formatter = IntelFormatter::new();
    formatter.options_mut().set_hex_prefix("0x");
    formatter.options_mut().set_hex_suffix("");
    formatter.options_mut().set_branch_leading_zeros(false);
    formatter.options_mut().set_show_branch_size(false);
    formatter
        .options_mut()
        .set_space_after_operand_separator(true);
    let mut lines = vec![];
    while lines.len() < SHOWN && decoder.can_decode() {
        let instruction = decoder.decode();
        if instruction.is_invalid() {
            break;
        }
        let mut text = String::new();
        formatter.format(&instruction, &mut text);
        lines.push(format!("{:#x}  {text}", instruction.ip()));
    }
    (!lines.is_empty()).then_some(lines)
}
