package llmtest

import (
	"slices"
	"testing"

	"tandem/llm"
)

// Run holds a provider to everything.
func Run(t *testing.T, h Harness) {
	t.Helper()
	features := []Feature{
		Reasoning, CallIDs, FailedResults, OneTool, Schemas, AnyJSON, WholeToolSchemas, StreamErrors, RetryAfter, CRLF, KeepAlive, NoKey,
	}
	for f, why := range h.Without {
		if !slices.Contains(features, f) || why == "" {
			t.Errorf("without %q: no such feature, or no reason given", f)
		}
	}
	for _, c := range []struct {
		name  string
		needs Feature
		run   func(*testing.T, Harness)
	}{
		{"Request/Conversation", "", testConversation},
		{"Request/SystemMessages", "", testSystemMessages},
		{"Request/Tools", "", testTools},
		{"Request/ToolChoice", "", testToolChoice},
		{"Request/HugeToolList", "", testHugeToolList},
		{"Request/Schema", Schemas, testSchema},
		{"Request/AnyJSON", AnyJSON, testAnyJSON},
		{"Request/Parameters", "", testParameters},
		{"Request/Key", "", testKey},
		{"Request/NoKey", NoKey, testNoKey},

		{"Answer/Text", "", bothWays(testText)},
		{"Answer/Unicode", "", bothWays(testUnicode)},
		{"Answer/Empty", "", bothWays(testEmpty)},
		{"Answer/ToolCalls", "", bothWays(testToolCalls)},
		{"Answer/TextAndToolCalls", "", bothWays(testTextAndToolCalls)},
		{"Answer/Reasoning", Reasoning, bothWays(testReasoning)},
		{"Answer/Length", "", bothWays(testLength)},
		{"Answer/Refusal", "", bothWays(testRefusal)},
		{"Answer/Usage", "", bothWays(testUsage)},
		{"Answer/UsageMissing", "", bothWays(testUsageMissing)},
		{"Answer/MalformedArguments", "", bothWays(testMalformedArguments)},
		{"Answer/Garbage", "", bothWays(testGarbage)},
		{"Answer/ManyAtOnce", "", bothWays(testManyAtOnce)},

		{"Stream/AsItArrives", "", testAsItArrives},
		{"Stream/ManyDeltas", "", testManyDeltas},
		{"Stream/AwkwardPieces", "", testAwkwardPieces},
		{"Stream/LineEnds", CRLF, testLineEnds},
		{"Stream/KeepAlive", KeepAlive, testKeepAlive},
		{"Stream/SlowFirstToken", "", testSlowFirstToken},
		{"Stream/Cut", "", testCut},
		{"Stream/ErrorInside", StreamErrors, testErrorInside},

		{"Failure/Codes", "", testCodes},
		{"Failure/RetryAfter", RetryAfter, testRetryAfter},
		{"Failure/NotJSON", "", testNotJSON},
		{"Failure/PlainCut", "", testPlainCut},
		{"Failure/Refused", "", testConnectionRefused},
		{"Failure/EchoedSecret", "", testEchoedSecret},

		{"Cancel/BeforeHeaders", "", bothWays(testCancelBeforeHeaders)},
		{"Cancel/BeforeFirstToken", "", bothWays(testCancelBeforeFirstToken)},
		{"Cancel/AsItAnswers", "", bothWays(testCancelAsItAnswers)},
		{"Cancel/WithinStream", "", testCancelWithinStream},
		{"Cancel/Already", "", bothWays(testCancelAlready)},
		{"Cancel/Deadline", "", bothWays(testDeadline)},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if why, lacks := h.Without[c.needs]; lacks {
				t.Skipf("without %s: %s", c.needs, why)
			}
			c.run(t, h)
		})
	}
}

// bothWays runs a case with a stream and without.
func bothWays(run func(*testing.T, Harness, llm.Request)) func(*testing.T, Harness) {
	return func(t *testing.T, h Harness) {
		t.Run("Stream", func(t *testing.T) {
			t.Parallel()
			run(t, h, h.plain(true))
		})
		t.Run("Plain", func(t *testing.T) {
			t.Parallel()
			run(t, h, h.plain(false))
		})
	}
}
