package store_test

import (
	"slices"
	"strings"
	"testing"

	"tandem/store"
)

func TestWords(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                     "",
		"Hello, World-Wide 42": "hello world wide 42",
		"数据库":                  "数据 据库 库",
		"用Go写的":                "用 go 写的 的",
		"猫":                    "猫",
		"Ünïcode É":            "ünïcode é",
		"カタカナ한국":               "カタ タカ カナ ナ한 한국 국",
		"a_b\"c*(d)":           "a b c d",
		"🙂 x":                  "x",
	} {
		if got := strings.Join(store.Words(text), " "); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	if got := store.Words(strings.Repeat("x", 1000) + " y"); !slices.Equal(got, []string{"y"}) {
		t.Errorf("a word without end: %q", got)
	}
	for text, want := range map[string]string{"数据库": "数据 据库", "猫": "猫", "the THE cat": "the cat", "猫 狗": "猫 狗", "数据 库": "数据 库", "": ""} {
		if got := strings.Join(store.Query(text, 10), " "); got != want {
			t.Errorf("query %q: %q, want %q", text, got, want)
		}
	}
	if got := store.Query("a b c d", 2); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("at most two: %q", got)
	}
}
