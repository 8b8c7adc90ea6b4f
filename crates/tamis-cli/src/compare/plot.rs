//! Dot plots with a logarithmic axis, as standalone SVG. The values span factors of thousands, and bars would have no
//! honest length on such an axis.

use std::fmt::Write as _;

const WIDTH: f64 = 760.0;
const LEFT: f64 = 92.0;
const RIGHT: f64 = 24.0;
const TOP: f64 = 58.0;
const ROW: f64 = 26.0;

/// Colours for light and dark modes; shapes differ, too.
const STYLE: &str = "<style>\
.plot{font:13px system-ui,sans-serif;--ink:#222;--faint:#ddd;--a:#0b62b0;--b:#c2410c;--c:#15803d;--d:#7e22ce}\
@media(prefers-color-scheme:dark){.plot{--ink:#e6e6e6;--faint:#444;--a:#6db3f2;--b:#fb923c;--c:#4ade80;--d:#d8b4fe}}\
.plot text{fill:var(--ink)}.plot .title{font-weight:600;font-size:15px}.plot line{stroke:var(--faint)}\
.plot .s0{fill:var(--a)}.plot .s1{fill:var(--b)}.plot .s2{fill:var(--c)}.plot .s3{fill:var(--d)}\
</style>";

pub(crate) struct Plot<'a> {
    /// Unique on the page.
    pub(crate) id: &'a str,
    pub(crate) title: &'a str,
    pub(crate) series: &'a [&'a str],
    /// A name, and one value per series; `None` if not measured.
    pub(crate) rows: Vec<(&'a str, Vec<Option<f64>>)>,
    pub(crate) show: fn(f64) -> String,
}

impl Plot<'_> {
    pub(crate) fn svg(&self) -> String {
        let values = || self.rows.iter().flat_map(|(_, values)| values).flatten();
        let positive = || values().copied().filter(|value| *value > 0.0);
        let least = positive().fold(f64::INFINITY, f64::min);
        let greatest = positive().fold(0.0, f64::max);
        let (from, to) = if greatest > 0.0 {
            (least.log10().floor(), greatest.log10().ceil())
        } else {
            (0.0, 1.0)
        };
        let to = to.max(from + 1.0);
        let x = |value: f64| {
            let part = ((value.log10() - from) / (to - from)).clamp(0.0, 1.0);
            LEFT + part * (WIDTH - LEFT - RIGHT)
        };
        let bottom = TOP + ROW * self.rows.len() as f64;
        let mut svg = format!(
            "<svg class=\"plot\" xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" \
             aria-labelledby=\"{id}-title {id}-text\">{STYLE}<title id=\"{id}-title\">{title}</title>\
             <desc id=\"{id}-text\">{text}</desc><text class=\"title\" x=\"0\" y=\"16\">{title}</text>",
            height = bottom + 26.0,
            id = self.id,
            title = self.title,
            text = self.in_words(),
        );
        let mut put = |text: std::fmt::Arguments| {
            let _ = svg.write_fmt(text); // a String takes anything
        };
        let mut at = 0.0;
        for (i, name) in self.series.iter().enumerate() {
            put(format_args!("{}", mark(i, at + 8.0, 36.0, "")));
            put(format_args!(
                "<text x=\"{}\" y=\"40\">{name}</text>",
                at + 18.0
            ));
            at += 40.0 + 7.0 * name.len() as f64;
        }
        // One line per power of ten; only some of them if there are many.
        let step = ((to - from) / 6.0).ceil().max(1.0);
        let mut power = from;
        while power <= to {
            let place = x(10f64.powf(power));
            put(format_args!(
                "<line x1=\"{place:.1}\" x2=\"{place:.1}\" y1=\"{TOP}\" y2=\"{bottom}\"/>\
                 <text x=\"{place:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
                bottom + 18.0,
                (self.show)(10f64.powf(power))
            ));
            power += step;
        }
        for (i, (name, values)) in self.rows.iter().enumerate() {
            let y = TOP + ROW * (i as f64 + 0.5);
            put(format_args!(
                "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{name}</text>\
                 <line x1=\"{LEFT}\" x2=\"{}\" y1=\"{y}\" y2=\"{y}\"/>",
                LEFT - 8.0,
                y + 4.5,
                WIDTH - RIGHT
            ));
            for (series, value) in values.iter().enumerate() {
                if let Some(value) = value {
                    let tip = format!("{name}, {}: {}", self.series[series], (self.show)(*value));
                    let place = if *value > 0.0 { x(*value) } else { LEFT };
                    put(format_args!("{}", mark(series, place, y, &tip)));
                }
            }
        }
        svg.push_str("</svg>");
        svg
    }

    fn in_words(&self) -> String {
        let value = |(series, value): (&&str, &Option<f64>)| {
            let value = value.map_or("not measured".into(), self.show);
            format!("{series} {value}")
        };
        let row = |(name, values): &(&str, Vec<Option<f64>>)| {
            let values: Vec<_> = self.series.iter().zip(values).map(value).collect();
            format!("{name}: {}", values.join(", "))
        };
        let rows: Vec<_> = self.rows.iter().map(row).collect();
        format!("{}.", rows.join(". ").replace('<', "&lt;"))
    }
}

/// A circle, a square, a diamond, a triangle.
fn mark(series: usize, x: f64, y: f64, tip: &str) -> String {
    let tip = match tip {
        "" => String::new(),
        tip => format!("<title>{}</title>", tip.replace('<', "&lt;")),
    };
    let shape = match series {
        0 => {
            return format!(
                "<circle class=\"s0\" cx=\"{x:.1}\" cy=\"{y}\" r=\"5.5\">{tip}</circle>"
            );
        }
        1 => "-5,-5 5,-5 5,5 -5,5",
        2 => "0,-6.5 6.5,0 0,6.5 -6.5,0",
        _ => "0,-6 6,5 -6,5",
    };
    format!(
        "<polygon class=\"s{series}\" transform=\"translate({x:.1} {y})\" points=\"{shape}\">{tip}</polygon>"
    )
}
