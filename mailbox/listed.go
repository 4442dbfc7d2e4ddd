package mailbox

import (
	"path"
	"strings"
)

// Listed says whether an address is one of a list of addresses, domains and patterns: ann@example.com, example.com, *@*.example.com.
func Listed(list []string, address string) bool {
	address = strings.ToLower(address)
	if address == "" {
		return false
	}
	domain := address[strings.LastIndexByte(address, '@')+1:]
	for _, entry := range list {
		entry = strings.ToLower(strings.TrimSpace(entry))
		switch {
		case strings.ContainsAny(entry, "*?["):
			if fits, err := path.Match(entry, address); err == nil && fits {
				return true
			}
		case strings.HasPrefix(entry, "@"):
			if domain == entry[1:] {
				return true
			}
		case strings.Contains(entry, "@"):
			if address == entry {
				return true
			}
		case entry != "" && domain == entry:
			return true
		}
	}
	return false
}
