//! Listings as a page that opens from disk: no network and no script; names stay text.
//!
//! Everything that the JSON gives is in it. At first, only the part of a long function near its hot instructions is
//! shown; a checkbox, or a jump into it, brings out the rest, by style alone. The page is well-formed XML, too, so that
//! programs can read it.

mod listing;

use super::annotated::{Annotation, EventTotal, NameSummary, Precision};
use super::costs::{Cost, Costs};
use crate::analysis::category::Category;
use crate::analysis::quantity::{counted, grouped, quantity};
use crate::error::Result;
use crate::model::backing::base_name;
use crate::model::printable::readable;
use crate::model::stacks::Weight;
use std::io::Write;

const STYLE: &str = include_str!("page.css");

/// Writes the page; of each function this many instructions on either side of a hot one are seen at first, `None`: all.
pub(crate) fn write(annotation: &Annotation, context: Option<usize>, out: &mut dyn Write) -> Result<()> {
    let page = ListingPage { annotation, context };
    writeln!(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\"/>\
         <meta name=\"viewport\" content=\"width=device-width\"/><meta name=\"generator\" content=\"jitgraft {}\"/>\
         <title>Hot code</title>\n<style>\n{STYLE}</style></head>\n<body>\n<h1>Hot code</h1>",
        env!("CARGO_PKG_VERSION")
    )?;
    page.summary(out)?;
    for (number, listing) in annotation.listings.iter().enumerate() {
        page.listing(number + 1, listing, out)?;
    }
    Ok(writeln!(out, "</body></html>")?)
}

/// The page to write.
struct ListingPage<'a> {
    annotation: &'a Annotation,
    context: Option<usize>,
}

impl ListingPage<'_> {
    fn summary(&self, out: &mut dyn Write) -> Result<()> {
        let (names, codes) = self.annotation.all;
        for event in &self.annotation.events {
            writeln!(out, "<p>{}</p>", self.event(event))?;
        }
        writeln!(
            out,
            "<p>{} in {} of code {} {} of their own; {} listed below.</p>",
            counted(names as u64, "function"),
            counted(codes as u64, "piece"),
            if names == 1 { "has" } else { "have" },
            self.annotation.words().any,
            grouped(self.annotation.listings.len() as u64)
        )?;
        write!(out, "<div class=\"scroll\"><table class=\"names\"><thead><tr>")?;
        self.heads(out)?;
        writeln!(out, "<th class=\"n\">codes</th><th>function</th></tr></thead><tbody>")?;
        for name in &self.annotation.names {
            self.name(name, out)?;
        }
        Ok(writeln!(out, "</tbody></table></div>")?)
    }

    /// The event's kind of samples, and the instruction that they are at.
    fn event(&self, event: &EventTotal) -> String {
        let total = quantity(event.total.weight.unsigned_abs(), &event.unit, Weight::Period);
        let (total, said) = (escaped(total.as_bytes()), event.precision.text());
        let name = escaped(event.name.as_bytes());
        match event.precision {
            Precision::Exact => format!("<b>{name}</b>: {total}; {said}."),
            _ => format!("<b>{name}</b>: {}, {total}; each stands {said}.", event.counted(event.total.count)),
        }
    }

    /// A function with links to those of its code ranges that are listed.
    fn name(&self, name: &NameSummary, out: &mut dyn Write) -> Result<()> {
        write!(out, "<tr>")?;
        self.costs(Some(&name.costs), |event| event.total, out)?;
        let module = name.module.as_deref().map_or_else(String::new, |module| escaped(base_name(module)));
        write!(out, "<td class=\"n\">{}</td><td>{}", name.codes.len(), escaped(&name.name))?;
        write!(out, " <span class=\"d\">{module}")?;
        let own = self.annotation.listings.iter().enumerate().filter(|(_, listing)| {
            // Code of one name in two dumps is one function; native functions of two files are two.
            let is_same_file = listing.module == name.module || matches!(listing.hottest().category, Category::Jit(_));
            listing.name == name.name && is_same_file
        });
        for (number, listing) in own {
            let number = number + 1;
            write!(out, " <a href=\"#l{number}\">{number}: {}</a>", grouped(self.annotation.number(&listing.costs)))?;
        }
        Ok(writeln!(out, "</span></td></tr>")?)
    }

    fn heads(&self, out: &mut dyn Write) -> Result<()> {
        let head = self.annotation.words().head;
        for event in &self.annotation.events {
            write!(out, "<th class=\"n\">{}</th><th class=\"n\">{head}</th>", escaped(event.name.as_bytes()))?;
        }
        Ok(())
    }

    /// Share of a whole, with a bar, and samples, for each event.
    fn costs(&self, costs: Option<&Costs>, whole: impl Fn(&EventTotal) -> Cost, out: &mut dyn Write) -> Result<()> {
        for event in &self.annotation.events {
            match costs.map(|costs| costs.get(event.number)).filter(|cost| cost.count > 0) {
                Some(cost) => {
                    let percent = cost.percent_of(whole(event), self.annotation.weight);
                    let samples = grouped(cost.count);
                    write!(
                        out,
                        "<td class=\"n c\" style=\"--p:{percent:.2}%\">{percent:.2}%</td><td class=\"n\">{samples}</td>"
                    )?;
                }
                None => write!(out, "<td></td><td></td>")?,
            }
        }
        Ok(())
    }
}

/// A name in which nothing is markup, between tags and in an attribute, or does anything else.
pub(super) fn escaped(name: &[u8]) -> String {
    let text = readable(name).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    text.replace('"', "&quot;").replace('\'', "&#39;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_names_stay_text() {
        let name = "</script><img src=x onerror='alert(\"1\")'>\u{202e}\x1b[2J&";
        let text = "&lt;/script&gt;&lt;img src=x onerror=&#39;alert(&quot;1&quot;)&#39;&gt;\\u{202e}\\x1b[2J&amp;";
        assert_eq!(escaped(name.as_bytes()), text);
    }
}
