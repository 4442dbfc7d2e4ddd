package llm_test

import (
	"math"
	"slices"
	"testing"

	"tandem/llm"
)

func cosine(a, b string) float64 {
	x, y := llm.HashEmbed(a), llm.HashEmbed(b)
	sum := 0.0
	for i := range x {
		sum += float64(x[i]) * float64(y[i])
	}
	return sum
}

func TestHashEmbed(t *testing.T) {
	t.Parallel()
	t.Run("HasLengthOne", func(t *testing.T) {
		t.Parallel()
		for _, text := range []string{"a", "Hello, world", "你好", "日本語のテスト", "สวัสดี", "café", "42", "mixed 中文 text"} {
			v := llm.HashEmbed(text)
			if got := math.Sqrt(cosine(text, text)); len(v) != llm.HashDimensions || math.Abs(got-1) > 1e-5 {
				t.Errorf("%q: %d dimensions, length %f", text, len(v), got)
			}
		}
		for _, text := range []string{"", " \n", "?!。"} {
			if v := llm.HashEmbed(text); len(v) != llm.HashDimensions || slices.ContainsFunc(v, func(f float32) bool { return f != 0 }) {
				t.Errorf("%q has nothing to embed and became %v", text, v)
			}
		}
	})
	t.Run("IsTheSameForEver", func(t *testing.T) {
		t.Parallel()
		// Vectors are kept in stores, so this one may not change.
		v := llm.HashEmbed("Order 42: 退款 refund")
		type entry struct {
			at    int
			value float32
		}
		var largest []entry
		for i, f := range v {
			if math.Abs(float64(f)) > 0.28 {
				largest = append(largest, entry{i, f})
			}
		}
		want := []entry{{80, -0.31234753}, {103, 0.31234753}, {192, -0.31234753}, {232, -0.31234753}}
		if !slices.Equal(want, largest) {
			t.Errorf("got %v, want %v", largest, want)
		}
		for range 20 {
			if !slices.Equal(v, llm.HashEmbed("Order 42: 退款 refund")) {
				t.Fatal("two vectors of one text differ")
			}
		}
	})
	t.Run("DoesNotSeeForm", func(t *testing.T) {
		t.Parallel()
		for _, pair := range [][2]string{{"Hello World", "hello,  world!"}, {"ＡＢＣ１２３", "abc123"}, {"cafe\u0301", "café"}, {"退款 订单", "退款\n订单"}} {
			if got := cosine(pair[0], pair[1]); got < 0.9999 {
				t.Errorf("%q and %q: %f", pair[0], pair[1], got)
			}
		}
	})
	t.Run("BringsLikeToLike", func(t *testing.T) {
		t.Parallel()
		for _, c := range []struct{ query, near, far string }{
			{"refund of an order", "How do I get a refund for my orders?", "The weather in Bern is fine today."},
			{"reset password", "resetting the passwords of users", "monthly sales report"},
			{"我要退款", "如何申请退款？", "今天北京天气很好"},
			{"订单什么时候发货", "查询订单的发货时间", "会议室预订流程"},
			{"deploy kubernetes 集群", "kubernetes 集群的部署", "午餐菜单"},
		} {
			near, far := cosine(c.query, c.near), cosine(c.query, c.far)
			if near < far+0.15 {
				t.Errorf("%q: %.3f to %q, %.3f to %q", c.query, near, c.near, far, c.far)
			}
		}
	})
}
