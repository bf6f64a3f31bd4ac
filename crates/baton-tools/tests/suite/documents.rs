//! The text of PDF and office documents, and documents that were made to do harm.

use std::fs;
use std::io::Write as _;
use std::path::Path;

use baton_tools::documents::{DocumentError, DocumentReader, text_of};
use baton_tools::offload::Abandoned;
use baton_tools::read_file::ReadFile;
use baton_tools::search::corpus::Corpora;
use baton_tools::search_docs::{DocFolders, SearchDocs};
use lopdf::content::{Content, Operation};
use lopdf::{Document, Object, Stream, StringFormat, dictionary};
use serde_json::json;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use crate::{call, refusal};

/// An archive with these parts, compressed.
fn archive(parts: &[(&str, &str)]) -> Vec<u8> {
    let mut zip = ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_method(zip::CompressionMethod::Deflated);
    for (name, content) in parts {
        zip.start_file(*name, options).unwrap();
        zip.write_all(content.as_bytes()).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

/// A PDF with one page for each list of operations, in compressed streams.
fn pdf(pages: Vec<Vec<Operation>>) -> Vec<u8> {
    let mut document = Document::with_version("1.5");
    let tree = document.new_object_id();
    let font = document.add_object(
        dictionary! {"Type" => "Font", "Subtype" => "Type1", "BaseFont" => "Helvetica", "Encoding" => "WinAnsiEncoding"},
    );
    let resources = document.add_object(dictionary! {"Font" => dictionary! {"F1" => font}});
    let count = i64::try_from(pages.len()).unwrap();
    let pages = pages.into_iter().map(|operations| {
        let content = Content { operations }.encode().unwrap();
        let content = document.add_object(Stream::new(dictionary! {}, content));
        let page = dictionary! {"Type" => "Page", "Parent" => tree, "Contents" => content};
        Object::from(document.add_object(page))
    });
    let kids: Vec<Object> = pages.collect();
    let node = dictionary! {"Type" => "Pages", "Kids" => kids, "Count" => count, "Resources" => resources,
    "MediaBox" => vec![0.into(), 0.into(), 595.into(), 842.into()]};
    document.objects.insert(tree, Object::Dictionary(node));
    let catalog = document.add_object(dictionary! {"Type" => "Catalog", "Pages" => tree});
    document.trailer.set("Root", catalog);
    document.compress();
    let mut bytes = Vec::new();
    document.save_to(&mut bytes).unwrap();
    bytes
}

fn operation(operator: &str, operands: Vec<Object>) -> Operation {
    Operation::new(operator, operands)
}

/// Text at a place, in `WinAnsi`.
fn drawn(x: i64, y: i64, text: &[u8]) -> Vec<Operation> {
    vec![
        operation("BT", vec![]),
        operation("Tf", vec!["F1".into(), 12.into()]),
        operation("Td", vec![x.into(), y.into()]),
        operation("Tj", vec![Object::String(text.to_vec(), StringFormat::Literal)]),
        operation("ET", vec![]),
    ]
}

#[test]
fn pdf_pages_lines_and_gaps() {
    let row = [drawn(50, 700, b"Menge"), drawn(300, 700, b"Preis \x80"), drawn(50, 680, b"M\xfcller")];
    let second = drawn(50, 700, b"The second page");
    let text = text_of(&pdf(vec![row.concat(), second])).unwrap();
    assert_eq!(text, "# Page 1\n\nMenge  Preis €\nMüller\n\n# Page 2\n\nThe second page");
    assert_eq!(text_of(&pdf(vec![vec![]])).unwrap(), "(no text: the pages may be images)");
}

#[test]
fn word_headings_lists_and_tables() {
    let document = r#"<?xml version="1.0"?><w:document xmlns:w="x"><w:body>
        <w:p><w:pPr><w:pStyle w:val="Heading1"/></w:pPr><w:r><w:t>Plan</w:t></w:r></w:p>
        <w:p><w:r><w:t xml:space="preserve">One &amp; </w:t></w:r><w:r><w:t>two</w:t><w:br/><w:t>three</w:t></w:r></w:p>
        <w:p><w:pPr><w:numPr><w:ilvl w:val="0"/></w:numPr></w:pPr><w:r><w:t>item</w:t></w:r></w:p>
        <w:p><w:r><w:delText>deleted</w:delText><w:instrText>PAGE</w:instrText></w:r></w:p>
        <w:tbl><w:tr><w:tc><w:p><w:r><w:t>a</w:t></w:r></w:p></w:tc><w:tc><w:p><w:r><w:t>b</w:t></w:r></w:p></w:tc></w:tr></w:tbl>
        </w:body></w:document>"#;
    let footer = "<w:ftr><w:p><w:r><w:t>Footer</w:t></w:r></w:p></w:ftr>";
    let bytes = archive(&[
        ("[Content_Types].xml", "<Types/>"),
        ("word/document.xml", document),
        ("word/footer1.xml", footer),
    ]);
    let text = text_of(&bytes).unwrap();
    assert_eq!(text, "# Plan\n\nOne & two\nthree\n- item\n\na | b |\n\nFooter");
}

#[test]
fn excel_sheets_with_shared_texts_and_dates() {
    let bytes = archive(&[
        (
            "xl/workbook.xml",
            r#"<workbook><sheets><sheet name="Q1 &amp; Q2" sheetId="1" r:id="rId1"/></sheets></workbook>"#,
        ),
        (
            "xl/_rels/workbook.xml.rels",
            r#"<Relationships><Relationship Id="rId1" Type="t" Target="worksheets/sheet1.xml"/></Relationships>"#,
        ),
        (
            "xl/sharedStrings.xml",
            "<sst><si><t>Name</t></si><si><r><t>Rich </t></r><r><t>text</t></r></si></sst>",
        ),
        (
            "xl/styles.xml",
            r#"<styleSheet><numFmts><numFmt numFmtId="164" formatCode="yyyy\-mm\-dd"/></numFmts><cellXfs><xf numFmtId="0"/><xf numFmtId="164"/></cellXfs></styleSheet>"#,
        ),
        (
            "xl/worksheets/sheet1.xml",
            r#"<worksheet><sheetData><row r="1"><c r="A1" t="s"><v>0</v></c><c r="C1" t="s"><v>1</v></c></row>
            <row r="2"><c r="A2"><v>12.5</v></c><c r="B2" s="1"><v>45365</v></c><c r="C2" t="b"><v>1</v></c><c r="D2" t="inlineStr"><is><t>x</t></is></c><c r="ZZZZ9"><v>1</v></c></row></sheetData></worksheet>"#,
        ),
    ]);
    let text = text_of(&bytes).unwrap();
    assert_eq!(text, "# Q1 & Q2\n\nName |  | Rich text\n12.5 | 2024-03-14 | TRUE | x");
}

#[test]
fn slides_and_open_documents() {
    let slide = |text: &str| format!("<p:sld><a:p><a:r><a:t>{text}</a:t></a:r></a:p></p:sld>");
    let bytes = archive(&[
        ("ppt/presentation.xml", "<p/>"),
        ("ppt/slides/slide10.xml", &slide("last")),
        ("ppt/slides/slide2.xml", &slide("first")),
    ]);
    assert_eq!(text_of(&bytes).unwrap(), "# Slide 1\n\nfirst\n\n# Slide 2\n\nlast");
    let content = r#"<office:document-content><office:body><office:text>
        <text:tracked-changes><text:p>deleted</text:p></text:tracked-changes>
        <text:h text:outline-level="2">Title</text:h><text:p>One<text:s text:c="3"/>two<text:tab/>three<office:annotation><text:p>note</text:p></office:annotation></text:p>
        <table:table table:name="T"><table:table-row><table:table-cell><text:p>a</text:p></table:table-cell><table:table-cell table:number-columns-repeated="999999999"/></table:table-row></table:table>
        </office:text></office:body></office:document-content>"#;
    let bytes = archive(&[("content.xml", content), ("META-INF/manifest.xml", "<manifest/>")]);
    assert_eq!(text_of(&bytes).unwrap(), "## Title\nOne   two\tthree\n\n# T\n\na");
}

/// None of these takes the reader down, and each is an error or a text.
#[test]
fn hostile_documents_are_errors() {
    let bomb = archive(&[("word/document.xml", &" ".repeat(97 << 20))]);
    assert!(bomb.len() < 1 << 20, "{}", bomb.len());
    assert_eq!(text_of(&bomb), Err(DocumentError::Limits));
    let other = archive(&[("a.txt", "x")]);
    assert_eq!(text_of(&other), Err(DocumentError::Unknown));
    let looping = "%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj 2 0 obj<</Type/Pages/Kids[2 0 R]/Count 1/Parent 2 0 R>>endobj\ntrailer<</Root 1 0 R/Size 3/Prev 9>>\nstartxref\n9\n%%EOF";
    let whole = pdf(vec![drawn(50, 700, b"text")]);
    let half = &whole[..whole.len() / 2];
    let garbage = [b"PK\x03\x04".as_slice(), &[0xff; 500]].concat();
    for bytes in [looping.as_bytes(), half, garbage.as_slice(), b"%PDF-"] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.pdf");
        fs::write(&path, bytes).unwrap();
        let file = fs::File::open(&path).unwrap();
        if let Ok(text) = DocumentReader::InProcess.read(file, &Abandoned::default()) {
            assert!(text.len() < 100, "{text}");
        }
    }
}

/// A page whose content is far larger than its file, and one that draws itself again and again.
#[test]
fn pdf_bombs_are_bounded() {
    let mut content = b"BT /F1 12 Tf (x) Tj ET\n".to_vec();
    content.resize(33 << 20, b' ');
    let mut document = Document::load_mem(&pdf(vec![drawn(50, 700, b"text")])).unwrap();
    let page = document.page_iter().next().unwrap();
    let stream = document.get_page_contents(page)[0];
    let mut bomb = Stream::new(dictionary! {}, content);
    bomb.compress().unwrap();
    document.objects.insert(stream, Object::Stream(bomb));
    let mut bytes = Vec::new();
    document.save_to(&mut bytes).unwrap();
    assert!(bytes.len() < 1 << 20, "{}", bytes.len());
    assert_eq!(text_of(&bytes).unwrap(), "(this page cannot be read: it is damaged or too large)");
}

#[tokio::test]
async fn tools_read_documents() {
    let dir = tempfile::tempdir().unwrap();
    let docs = dir.path().join("docs");
    fs::create_dir(&docs).unwrap();
    fs::write(docs.join("vat.PDF"), pdf(vec![drawn(50, 700, b"The reduced rate is seven percent.")]))
        .unwrap();
    fs::write(docs.join("broken.docx"), b"PK\x03\x04 not an archive").unwrap();
    fs::write(
        dir.path().join("note.docx"),
        archive(&[("word/document.xml", "<w:p><w:r><w:t>Hi</w:t></w:r></w:p>")]),
    )
    .unwrap();
    fs::write(dir.path().join("a.zip"), archive(&[("a.txt", "x")])).unwrap();
    let folders = DocFolders { shared: vec![docs], ..DocFolders::default() };
    let search = SearchDocs::new(Corpora::new(folders.clone(), &[], &DocumentReader::default()));
    for _ in 0..2 {
        let text = call(&search, json!({"query": "reduced rate"}), dir.path()).await.unwrap();
        assert_eq!(text, "[1] docs/vat.PDF (line 1)\nThe reduced rate is seven percent.");
    }
    let read = ReadFile::new(Vec::new(), folders, dir.path().join("skills"), DocumentReader::default());
    let at = async |path: &str| call(&read, json!({"path": path}), dir.path()).await;
    assert_eq!(at("note.docx").await.unwrap(), "note.docx, lines 1 to 1 of 1\n\nHi\n");
    assert!(at("docs/vat.PDF").await.unwrap().contains("seven percent"));
    let error = at("a.zip").await.unwrap_err().to_string();
    assert!(error.contains("`a.zip` is not a text file"), "{error}");
    assert_eq!(refusal(&read, json!({"path": "docs/broken.docx"}), Path::new(dir.path())).await, "execution");
}
