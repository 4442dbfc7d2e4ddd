package sqlconn

import "strings"

// steady returns a statement that stays prepared, whatever is bound to it: every parameter gets a plus sign in front of it.
//
// SQLite looks at the values of bare parameters when it plans (that of a LIMIT, and those that a column is compared with), and
// then prepares the statement anew before it runs, because the values might be others; the driver, which clears the parameters
// after every use, makes that every time. Behind a plus sign a parameter is an expression like any other: it means the same,
// costs nothing, and the plan is made once.
func steady(text string) string {
	var out strings.Builder
	quoted := byte(0)
	for i := range len(text) {
		switch c := text[i]; {
		case quoted != 0:
			if c == quoted {
				quoted = 0
			}
		case c == '\'' || c == '"':
			quoted = c
		case c == '?':
			out.WriteByte('+')
		}
		out.WriteByte(text[i])
	}
	return out.String()
}
