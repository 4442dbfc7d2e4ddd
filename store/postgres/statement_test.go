package postgres

import "testing"

func TestTranslate(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, text, kinds, want string }{
		{"marks are numbered", `SELECT a FROM t WHERE b = ? AND c = ?`, "si", `SELECT a FROM t WHERE b = $1::text AND c = $2::bigint`},
		{"numbers stay", `SELECT a FROM t WHERE ?2 = '' OR b = ?2 AND c = ?1`, "bs", `SELECT a FROM t WHERE $2::text = '' OR b = $2::text AND c = $1::bytea`},
		{"a mark after a number goes on from it", `SELECT a FROM t WHERE b = ?9 LIMIT ?`, "iiiiiiiiii", `SELECT a FROM t WHERE b = $9::bigint LIMIT $10::bigint`},
		{"what is quoted stays", `SELECT '?', a FROM t WHERE b = ?`, "f", `SELECT '?', a FROM t WHERE b = $1::double precision`},
		{"nothing has no type", `INSERT INTO t (a) VALUES (?)`, "n", `INSERT INTO t (a) VALUES ($1)`},
		{"conditions", `SELECT a FROM t WHERE (? OR b = ?)`, "ts", `SELECT a FROM t WHERE ($1::boolean OR b = $2::text)`},
		{"empty bytes", `UPDATE t SET a = x'' WHERE b = ?`, "i", `UPDATE t SET a = ''::bytea WHERE b = $1::bigint`},
		{"hints to the planner", `SELECT a FROM t INDEXED BY t_a WHERE +b = ? AND (+t.c = 1)`, "s", `SELECT a FROM t WHERE b = $1::text AND (t.c = 1)`},
		{"sums stay", `SELECT a + 1, b +1 FROM t LIMIT ? + 1`, "i", `SELECT a + 1, b +1 FROM t LIMIT $1::bigint + 1`},
		{"joins that are not turned around", `SELECT a FROM t CROSS JOIN u ON u.a = t.a`, "", `SELECT a FROM t JOIN u ON u.a = t.a`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := translate(c.text, c.kinds); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}
