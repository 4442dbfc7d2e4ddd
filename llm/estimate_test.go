package llm_test

import (
	"strings"
	"testing"

	"tandem/llm"
)

func TestTokens(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text string
		want int64
	}{
		{"", 0}, {"a", 1}, {"abcd", 1}, {"abcde", 2}, {strings.Repeat("x", 4000), 1000},
		{"你好世界", 4}, {"こんにちは", 5}, {"안녕", 2}, {"，。", 2}, {"𠀀", 1},
		{"приветик", 4}, {"é", 1}, {"ab你", 2}, {"\xff\xff", 1},
	} {
		if got := llm.Tokens(c.text); got != c.want {
			t.Errorf("Tokens(%q) is %d, want %d", c.text, got, c.want)
		}
	}
}

func TestEstimate(t *testing.T) {
	t.Parallel()
	question := []llm.Message{
		{Role: llm.System, Content: "abcd"},
		{Role: llm.User, Content: "你好", Images: []llm.Image{{}, {}}},
	}
	answer := llm.Message{
		Role: llm.Assistant, Content: "abcdefgh", Reasoning: "abcd",
		ToolCalls: []llm.ToolCall{{ID: "not counted", Name: "find", Arguments: `{"a":12}`}},
	}
	want := llm.Usage{InputTokens: 4 + 1 + 4 + 2 + 2000, OutputTokens: 4 + 2 + 1 + 1 + 2, Estimated: true}
	if got := llm.Estimate(question, answer); got != want {
		t.Errorf("Estimate is %+v, want %+v", got, want)
	}
	if got := llm.Estimate(nil, llm.Message{}); got.Total() == 0 || !got.Estimated {
		t.Errorf("the estimate of nothing is %+v, want some tokens", got)
	}
}
