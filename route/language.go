package route

import (
	"context"

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
	return text.Language(text.Accepted(v.request.Header.Get("Accept-Language")))
}
