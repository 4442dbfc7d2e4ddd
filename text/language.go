package text

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// English is the language that everything is said in, and the one of readers whose language is not known.
const English = "en"

// Chinese is the language whose words stand beside the English ones in descriptions: see [Beside]. It is also the name of the tag that
// has them in structs.
const Chinese = "zh"

// languages are those that there are words in, in their order. read-only
var languages = append([]string{English}, slices.Sorted(maps.Keys(catalogues))...)

// Languages are all languages in their order: English, then the others by name.
func Languages() []string { return slices.Clone(languages) }

// CheckLanguage refuses what is not the name of one of [Languages]. The error names them, and begins with what was refused.
func CheckLanguage(name string) error {
	if slices.Contains(languages, name) {
		return nil
	}
	last := len(languages) - 1
	return fmt.Errorf("%q is not known; use %s or %s", name, strings.Join(languages[:last], ", "), languages[last])
}

// Known is the one of [Languages] that is meant by a tag, in any way that browsers and users write it: zh-CN, zh_TW, ZH. It is false where
// there are no words in that language.
func Known(tag string) (language string, known bool) {
	base, _, _ := strings.Cut(strings.ReplaceAll(strings.ToLower(tag), "_", "-"), "-")
	if !slices.Contains(languages, base) && len(base) > 2 {
		base = base[:2] // as in zho, or what people append to it
	}
	if !slices.Contains(languages, base) {
		return "", false
	}
	return base, true
}

// Language is the one of [Languages] for a reader of whose language is known what they wish, best first, in the ways of [Known]. Without
// a wish that can be met it is English.
func Language(wishes ...string) string {
	for _, tag := range wishes {
		if language, known := Known(tag); known {
			return language
		}
	}
	return English
}

// Accepted is the one of [Languages] that a browser asks for most, as its header Accept-Language says; empty: none of them.
func Accepted(header string) string {
	best, weight := "", 0.0
	for part := range strings.SplitSeq(header, ",") {
		tag, parameters, _ := strings.Cut(part, ";")
		language, known := Known(strings.TrimSpace(tag))
		if !known {
			continue
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
