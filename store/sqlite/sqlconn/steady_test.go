package sqlconn

import "testing"

func TestSteady(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"a = ? AND b = ?2 LIMIT ?":      "a = +? AND b = +?2 LIMIT +?",
		"a = '?''?' AND \"?\" = ?":      "a = '?''?' AND \"?\" = +?",
		"VALUES (?, '', x'', ?)":        "VALUES (+?, '', x'', +?)",
		"SELECT 1":                      "SELECT 1",
		"(?1 = '' OR user_id = ?1) = ?": "(+?1 = '' OR user_id = +?1) = +?",
	} {
		if got := steady(text); got != want {
			t.Errorf("%s becomes %s, want %s", text, got, want)
		}
	}
}
