//! Parses our flame graph page with an XML parser. The format is described in `src/render/flamegraph/data.rs`.

use serde_json::Value;

/// A parsed flame graph page.
#[derive(Debug)]
pub(crate) struct Page {
    /// The JSON in the element `facts`.
    pub(crate) facts: Value,
    /// All boxes, in file order.
    pub(crate) boxes: Vec<PageBox>,
    /// The texts of the static picture.
    pub(crate) texts: Vec<String>,
    /// The boxes of the static picture, as strokes: left edge, vertical middle, width, class.
    pub(crate) strokes: Vec<(f64, f64, f64, String)>,
}

/// A box, with amounts in the profile's unit.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PageBox {
    pub(crate) row: u64,
    pub(crate) start: u64,
    pub(crate) width: u64,
    pub(crate) name: String,
    /// The letter that stands for the box's color.
    pub(crate) letter: char,
    /// The self weight.
    pub(crate) own: Option<u64>,
    pub(crate) shares: String,
    pub(crate) before: Option<String>,
}

impl Page {
    pub(crate) fn parse(svg: &str) -> Self {
        let document = roxmltree::Document::parse(svg).unwrap_or_else(|error| panic!("{error}: {svg:.300}"));
        let by_id = |id: &str| document.descendants().find(|node| node.attribute("id") == Some(id));
        let text = |id: &str| by_id(id).unwrap_or_else(|| panic!("no {id}")).text().unwrap_or("").to_owned();
        let facts: Value = serde_json::from_str(&text("facts")).unwrap();
        let names = text("names");
        let names: Vec<&str> = names.split('\n').collect();
        let unit = facts["unit"].as_u64().unwrap();
        let mut boxes = Vec::new();
        for group in document.descendants().filter_map(|node| node.attribute("data-b")) {
            let mut start = 0i64;
            for record in group.split(' ') {
                let fields: Vec<&str> = record.split(',').collect();
                start += fields[1].parse::<i64>().unwrap();
                boxes.push(PageBox {
                    row: fields[0].parse().unwrap(),
                    start: start as u64 * unit,
                    width: fields[2].parse::<u64>().unwrap() * unit,
                    name: names[fields[3].parse::<usize>().unwrap()].to_owned(),
                    letter: fields[4].chars().next().unwrap(),
                    own: fields.get(5).and_then(|own| Some(own.parse::<u64>().ok()? * unit)),
                    shares: fields.get(6).copied().unwrap_or_default().to_owned(),
                    before: fields.get(7).map(|before| (*before).to_owned()),
                });
            }
        }
        let inside = by_id("boxes").unwrap();
        let texts = inside.descendants().filter(|node| node.has_tag_name(("http://www.w3.org/2000/svg", "text")));
        let texts = texts.filter_map(|node| node.text()).map(str::to_owned).collect();
        let mut strokes = Vec::new();
        for path in inside.descendants().filter(|node| node.has_tag_name(("http://www.w3.org/2000/svg", "path"))) {
            let class = path.attribute("class").unwrap();
            for stroke in path.attribute("d").unwrap().split('M').skip(1) {
                let (at, width) = stroke.split_once('h').unwrap();
                let (x, y) = at.split_once(' ').unwrap();
                let [x, y, width] = [x, y, width].map(|number| number.parse::<f64>().unwrap());
                strokes.push((x, y, width, class.to_owned()));
            }
        }
        Self { facts, boxes, texts, strokes }
    }

    /// All boxes with this name.
    pub(crate) fn named(&self, name: &str) -> Vec<&PageBox> {
        self.boxes.iter().filter(|one| one.name == name).collect()
    }
}
