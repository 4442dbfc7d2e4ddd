package document

import (
	"io"
	"mime"
	"strings"
	"unicode/utf8"

	"tandem/hypertext"
	"tandem/text"
)

// PageText reads a body as text: a page reduced to what it says, other text as it is. Ok is false for what is not text.
func PageText(contentType string, body io.Reader, limit int) (said string, page, ok bool, err error) {
	mediaType, parameters, perr := mime.ParseMediaType(contentType)
	if perr != nil {
		mediaType = ""
	}
	if BinaryType(mediaType) {
		return "", false, false, nil
	}
	data, err := io.ReadAll(body)
	if err != nil {
		return "", false, false, err
	}
	if mediaType == "" && !utf8.Valid(data) {
		return "", false, false, nil
	}
	plain := DecodeText(data, parameters["charset"])
	if mediaType == "text/html" || mediaType == "application/xhtml+xml" || mediaType == "" && looksLikePage(plain) {
		return hypertext.OfPage([]byte(plain), limit), true, true, nil
	}
	return text.Head(plain, limit), false, true, nil
}

func looksLikePage(text string) bool {
	begin := strings.ToLower(strings.TrimSpace(text[:min(len(text), 512)]))
	return strings.HasPrefix(begin, "<!doctype html") || strings.HasPrefix(begin, "<html")
}
