package outbound

import (
	"net/http"
	"strings"
)

// NextLink finds the address with the relation "next" in Link headers; empty: there is none.
func NextLink(header http.Header) string {
	for _, line := range header.Values("Link") {
		for line != "" {
			start := strings.IndexByte(line, '<')
			if start < 0 {
				break
			}
			end := strings.IndexByte(line[start:], '>')
			if end < 0 {
				break
			}
			target := line[start+1 : start+end]
			line = line[start+end+1:]
			parameters := line
			// The next entry begins at the next "<"; quoted parameters of links hold none.
			if i := strings.IndexByte(line, '<'); i >= 0 {
				parameters = line[:i]
			}
			line = line[len(parameters):]
			for parameter := range strings.SplitSeq(parameters, ";") {
				name, value, ok := strings.Cut(strings.Trim(strings.TrimSpace(parameter), ","), "=")
				if !ok || !strings.EqualFold(strings.TrimSpace(name), "rel") {
					continue
				}
				for relation := range strings.FieldsSeq(strings.Trim(strings.TrimSpace(value), `", `)) {
					if strings.EqualFold(relation, "next") {
						return target
					}
				}
			}
		}
	}
	return ""
}
