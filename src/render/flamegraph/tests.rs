use super::*;

#[test]
fn an_empty_profile_is_an_error_not_a_picture() {
    for style in [Style::Page, Style::Inferno] {
        for flame_chart in [false, true] {
            let look = Look { style, flame_chart, ..Look::default() };
            let options = WriteOptions::default();
            let nobody = draw(&Profile::new(), &options, &look, &mut Vec::new(), &write_picture);
            assert!(nobody.unwrap_err().to_string().contains("no samples to draw"));
        }
    }
}
