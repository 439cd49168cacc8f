//! The page: blocks in order, written as one HTML file that needs nothing else.

use crate::chart::Chart;
use crate::escape::escape;
use crate::heatmap::HeatMap;
use crate::palette::{CHART_CSS, variables};
use crate::table::Table;

const STYLE: &str = include_str!("style.css");
/// From this many sections on the page starts with links to them.
const SECTIONS_FOR_LINKS: usize = 4;

/// A report as one HTML file: no network, no scripts, light and dark, ready for print.
#[derive(Clone, Debug)]
pub struct Page {
    title: String,
    lead: String,
    footer: String,
    blocks: Vec<Block>,
}

/// A part of a [`Page`]. The methods of the page make them; they are needed by name only inside
/// [`Page::details`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Block {
    /// A heading, which starts a section.
    Section(String),
    /// Text; an empty line starts a new paragraph.
    Paragraph(String),
    /// Text that must not be overlooked.
    Note(String),
    /// Items with bullets.
    List(Vec<String>),
    /// Key figures.
    Cards(Vec<Card>),
    /// A table.
    Table(Table),
    /// A chart and its caption.
    Chart(Chart, String),
    /// A heat map and its caption.
    HeatMap(HeatMap, String),
    /// Text in letters of equal width, with its line breaks.
    Code(String),
    /// A summary that opens to show more.
    Details(String, Vec<Block>),
}

/// A key figure: what it is, its value, and a note.
#[derive(Clone, Debug)]
pub struct Card {
    name: String,
    value: String,
    note: String,
}

impl Card {
    /// A key figure without a note.
    pub fn new(name: impl Into<String>, value: impl Into<String>) -> Card {
        Card { name: name.into(), value: value.into(), note: String::new() }
    }

    /// Adds a short note under the value.
    pub fn note(mut self, text: impl Into<String>) -> Card {
        self.note = text.into();
        self
    }
}

impl Page {
    /// A page without content.
    pub fn new(title: impl Into<String>) -> Page {
        let (lead, footer, blocks) = (String::new(), String::new(), Vec::new());
        Page { title: title.into(), lead, footer, blocks }
    }

    /// Says in a sentence under the title what the page is about.
    pub fn lead(mut self, text: impl Into<String>) -> Page {
        self.lead = text.into();
        self
    }

    /// Sets the small text at the very end, such as what made the page.
    pub fn footer(mut self, text: impl Into<String>) -> Page {
        self.footer = text.into();
        self
    }

    /// Adds any block.
    pub fn block(mut self, block: Block) -> Page {
        self.blocks.push(block);
        self
    }

    /// Starts a section with a heading. Four or more sections get links at the top.
    pub fn section(self, heading: impl Into<String>) -> Page {
        self.block(Block::Section(heading.into()))
    }

    /// Adds text; an empty line starts a new paragraph.
    pub fn paragraph(self, text: impl Into<String>) -> Page {
        self.block(Block::Paragraph(text.into()))
    }

    /// Adds text that must not be overlooked, such as a warning.
    pub fn note(self, text: impl Into<String>) -> Page {
        self.block(Block::Note(text.into()))
    }

    /// Adds a list with bullets.
    pub fn list<T: Into<String>>(self, items: impl IntoIterator<Item = T>) -> Page {
        self.block(Block::List(items.into_iter().map(Into::into).collect()))
    }

    /// Adds a row of key figures.
    pub fn cards(self, cards: impl IntoIterator<Item = Card>) -> Page {
        self.block(Block::Cards(cards.into_iter().collect()))
    }

    /// Adds a table.
    pub fn table(self, table: Table) -> Page {
        self.block(Block::Table(table))
    }

    /// Adds a chart with a caption, which may be empty.
    pub fn chart(self, chart: Chart, caption: impl Into<String>) -> Page {
        self.block(Block::Chart(chart, caption.into()))
    }

    /// Adds a heat map with a caption, which may be empty.
    pub fn heat_map(self, map: HeatMap, caption: impl Into<String>) -> Page {
        self.block(Block::HeatMap(map, caption.into()))
    }

    /// Adds text in letters of equal width, such as a command or a configuration.
    pub fn code(self, text: impl Into<String>) -> Page {
        self.block(Block::Code(text.into()))
    }

    /// Adds a summary that opens to show more.
    pub fn details(self, summary: impl Into<String>, blocks: Vec<Block>) -> Page {
        self.block(Block::Details(summary.into(), blocks))
    }

    /// The whole page as one HTML file.
    pub fn to_html(&self) -> String {
        let title = escape(&self.title);
        let mut out = format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
             <meta name=\"color-scheme\" content=\"light dark\"/>\n\
             <meta name=\"generator\" content=\"broadlearn\"/>\n\
             <meta http-equiv=\"Content-Security-Policy\" \
             content=\"default-src 'none'; style-src 'unsafe-inline'\"/>\n\
             <title>{title}</title>\n<style>\n{}{STYLE}{CHART_CSS}</style>\n</head>\n\
             <body>\n<main>\n<header>\n<h1>{title}</h1>\n",
            variables(),
        );
        if !self.lead.is_empty() {
            out += &format!("<p class=\"lead\">{}</p>\n", escape(&self.lead));
        }
        out += "</header>\n";
        out += &self.links();
        let mut sections = 0;
        for block in &self.blocks {
            write_block(&mut out, block, &mut sections);
        }
        if !self.footer.is_empty() {
            out += &format!("<footer>{}</footer>\n", escape(&self.footer));
        }
        out + "</main>\n</body>\n</html>\n"
    }

    fn links(&self) -> String {
        let headings: Vec<&String> = self
            .blocks
            .iter()
            .filter_map(|block| match block {
                Block::Section(heading) => Some(heading),
                _ => None,
            })
            .collect();
        if headings.len() < SECTIONS_FOR_LINKS {
            return String::new();
        }
        let link = |(i, heading): (usize, &&String)| {
            format!("<a href=\"#section-{}\">{}</a>\n", i + 1, escape(heading))
        };
        let links: String = headings.iter().enumerate().map(link).collect();
        format!("<nav aria-label=\"Sections\">\n{links}</nav>\n")
    }
}

fn write_block(out: &mut String, block: &Block, sections: &mut usize) {
    match block {
        Block::Section(heading) => {
            *sections += 1;
            *out += &format!("<h2 id=\"section-{sections}\">{}</h2>\n", escape(heading));
        }
        Block::Paragraph(text) => write_paragraphs(out, text),
        Block::Note(text) => {
            *out += "<div class=\"note\" role=\"note\">\n";
            write_paragraphs(out, text);
            *out += "</div>\n";
        }
        Block::List(items) => {
            let items: String =
                items.iter().map(|item| format!("<li>{}</li>\n", escape(item))).collect();
            *out += &format!("<ul>\n{items}</ul>\n");
        }
        Block::Cards(cards) => {
            *out += "<dl class=\"cards\">\n";
            for card in cards {
                *out += &format!(
                    "<div><dt>{}</dt><dd class=\"value\">{}</dd>",
                    escape(&card.name),
                    escape(&card.value)
                );
                if !card.note.is_empty() {
                    *out += &format!("<dd class=\"small\">{}</dd>", escape(&card.note));
                }
                *out += "</div>\n";
            }
            *out += "</dl>\n";
        }
        Block::Table(table) => *out += &table.to_html(),
        Block::Chart(chart, caption) => write_figure(out, &chart.for_page(), caption),
        Block::HeatMap(map, caption) => write_figure(out, &map.for_page(), caption),
        Block::Code(text) => {
            *out += &format!("<pre tabindex=\"0\"><code>{}</code></pre>\n", escape(text));
        }
        Block::Details(summary, blocks) => {
            *out += &format!("<details>\n<summary>{}</summary>\n<div>\n", escape(summary));
            for block in blocks {
                write_block(out, block, sections);
            }
            *out += "</div>\n</details>\n";
        }
    }
}

fn write_paragraphs(out: &mut String, text: &str) {
    for paragraph in text.replace("\r\n", "\n").split("\n\n").filter(|p| !p.trim().is_empty()) {
        *out += &format!("<p>{}</p>\n", escape(paragraph.trim()));
    }
}

fn write_figure(out: &mut String, [wide, narrow]: &[String; 2], caption: &str) {
    *out += "<figure>\n";
    *out += &format!("<div class=\"wide\">{wide}</div>\n<div class=\"narrow\">{narrow}</div>\n");
    if !caption.is_empty() {
        *out += &format!("<figcaption>{}</figcaption>\n", escape(caption));
    }
    *out += "</figure>\n";
}
