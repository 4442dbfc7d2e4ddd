package route

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	"tandem/fault"
	"tandem/text"
)

// LanguageOf is the language that the reader of an answer asks for: by the parameter language, else by the header Accept-Language. It is
// English where they ask for none, or for none of those there are.
func LanguageOf(ctx context.Context) string {
	v := visitOf(ctx)
	if v == nil {
		return text.English
	}
	if asked := v.request.URL.Query().Get("language"); asked != "" {
		return text.Language(asked)
	}
	return accepted(v.request.Header)
}

// accepted is the language that a browser asks for most, of those there are.
func accepted(header http.Header) string {
	best, weight := text.English, 0.0
	for part := range strings.SplitSeq(header.Get("Accept-Language"), ",") {
		tag, parameters, _ := strings.Cut(strings.TrimSpace(part), ";")
		language := text.Language(tag)
		if language == text.English && !strings.HasPrefix(strings.ToLower(tag), text.English) {
			continue // which there are no words in
		}
		wanted := 1.0
		if q, given := strings.CutPrefix(strings.TrimSpace(parameters), "q="); given {
			parsed, err := strconv.ParseFloat(q, 64)
			if err != nil {
				continue
			}
			wanted = parsed
		}
		if wanted > weight {
			best, weight = language, wanted
		}
	}
	return best
}

// Words are what an error says in a language. Where the error has words for it they take the place of its message, which may say more in
// English. An error without words of its own is told by the format that its message was made of, unless it says something else by now.
func Words(language string, f *fault.Error) string {
	if language == text.English {
		return f.Message
	}
	var said text.Text
	if f.Words() != nil {
		var err error
		if said, err = text.Read(f.Words()); err != nil || said.In(language) == said.In(text.English) {
			return f.Message
		}
		return said.In(language)
	}
	format, values := f.MadeOf()
	if said = text.Formatted(format, values...); said.In(text.English) != f.Message {
		return f.Message
	}
	return said.In(language)
}
