package document

import (
	"slices"
	"strings"

	"golang.org/x/text/encoding/htmlindex"
)

// DecodeText reads text in the charset that it came in. What cannot be read becomes the replacement character.
func DecodeText(data []byte, charset string) string {
	if charset != "" && !strings.EqualFold(charset, "utf-8") && !strings.EqualFold(charset, "us-ascii") {
		if encoding, err := htmlindex.Get(charset); err == nil {
			if plain, err := encoding.NewDecoder().Bytes(data); err == nil {
				return string(plain)
			}
		}
	}
	return strings.ToValidUTF8(string(data), "\uFFFD")
}

// JSONType says that a media type is one of JSON.
func JSONType(mediaType string) bool {
	return mediaType == "application/json" || mediaType == "text/json" || strings.HasSuffix(mediaType, "+json")
}

// BinaryType says that a body of this type is not text. A body without a type is judged by its content.
func BinaryType(mediaType string) bool {
	switch {
	case mediaType == "" || strings.HasPrefix(mediaType, "text/") || JSONType(mediaType) || strings.HasSuffix(mediaType, "+xml"):
		return false
	case slices.Contains([]string{
		"application/xml", "application/javascript", "application/ecmascript", "application/x-www-form-urlencoded", "application/yaml",
		"application/x-yaml", "application/toml", "application/graphql", "application/x-ndjson", "application/jsonl",
		"application/sql", "application/problem+json",
	}, mediaType):
		return false
	}
	return true
}
