package route

import (
	"crypto/rand"
	"errors"
	"strconv"
	"strings"

	"tandem/store"
)

// MaxMadeIDs is how many numbers are tried before a made id gets an ending by chance.
const MaxMadeIDs = 20

// MadeID makes an id of a name: what can stand in an address without escaping. Where the name has nothing of that, it is the noun with
// an ending by chance.
func MadeID(name, noun string) string {
	const longest = 60
	var out strings.Builder
	for _, r := range strings.ToLower(name) {
		if out.Len() >= longest {
			break
		}
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			out.WriteRune(r)
		} else if text := out.String(); text != "" && !strings.HasSuffix(text, "-") {
			out.WriteByte('-')
		}
	}
	if id := strings.Trim(out.String(), "-"); id != "" {
		return id
	}
	return noun + "-" + RandomText()
}

// FreeID is the first id that find does not know: the one that is given, with a number, in the end with an ending by chance.
func FreeID(made string, find func(id string) error) (string, error) {
	id := made
	for n := 2; ; n++ {
		err := find(id)
		switch {
		case errors.Is(err, store.ErrNotFound):
			return id, nil
		case err != nil:
			return "", err
		case n > MaxMadeIDs:
			id = made + "-" + RandomText()
		default:
			id = made + "-" + strconv.Itoa(n)
		}
	}
}

// RandomText is short, and no other one is the same.
func RandomText() string { return strings.ToLower(rand.Text()[:12]) }
