package replies

import (
	"strings"
	"testing"

	"tandem/human/form"
)

// TestClassify_Plain has replies that leave nobody in doubt, and yeses that answer something else, to questions that name what they are
// about.
func TestClassify_Plain(t *testing.T) {
	t.Parallel()
	quote := "\n\nOn Mon, May 6, 2024 at 10:00 AM Tandem <bot@example.com> wrote:\n> Pay invoice INV-1042 to Acme\n> 5,000 USD for the annual support plan.\n> Do not approve unless you are sure."
	for reply, want := range map[string]string{
		"Yes, this is Maria.": "", "Yes, this is John Smith.": "", "Yes, I'm here.": "", "OK, I'm here.": "", "yes I'm here": "", "Sure, I'm listening.": "", "Yes, speaking.": "", "Yes, it's me.": "",
		"Ok, Tom here.": "", "Yes, I got your mail.": "", "是的，我在": "", "好的，我是王芳": "", "对，我就是": "", "在的，请讲": "", "嗯，我在": "",

		"No, do not run this.": form.Rejected, "Please cancel.": form.Rejected, "Stop. Cancel it.": form.Rejected, "REJECT - wrong cost center": form.Rejected, "Rejected - we never got the goods.": form.Rejected,
		"No." + quote: form.Rejected, "No thanks." + quote: form.Rejected, "I can't approve this.": form.Rejected, "Let's not do this.": form.Rejected, "We are not paying for this.": form.Rejected,
		"我不能批准这个申请": form.Rejected, "不可以执行": form.Rejected, "不要付款": form.Rejected, "请不要执行": form.Rejected, "驳回，材料不全": form.Rejected,

		"Don't worry, it's approved.": form.Confirmed, "Approved." + quote: form.Confirmed, "Yes, go ahead." + quote: form.Confirmed, "No objections, please proceed.": form.Confirmed, "Can't see any reason not to. Go ahead.": form.Confirmed,
		"项目看起来不错，批准执行": form.Confirmed, "没意见，同意": form.Confirmed, "不用等了，同意": form.Confirmed,

		"Not approved yet.": "", "Approved once the audit is done.": "", "I can't approve this today, I'm travelling.": "", "先别付": "", "不是不同意": "", "同意，但要先补发票": "", "Who approved this?": "",
	} {
		for _, language := range []string{"en", "zh"} {
			if j := Classify(replyTo(language, reply)); j.Classification != want {
				t.Errorf("%q (%s) is taken for %q (%s), want %q", reply, language, j.Classification, j.Reasoning, want)
			}
		}
	}
}

// TestClassify_Attends: a yes beside words about who somebody is, or that they are there, approves nothing, however the two are joined.
func TestClassify_Attends(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ yes, joins, selves []string }{
		{
			[]string{"Yes", "OK", "Sure", "Yep", "Okay", "Right"}, []string{", ", "! ", ". ", " - ", "\n"},
			[]string{"I'm awake.", "I'm around.", "that is my name.", "you found me.", "I'm on the train.", "I'm logged in.", "I'm connected.", "same person.", "I'm alive.", "this is she.", "I'm the manager."},
		},
		{[]string{"好的", "是的", "可以", "行", "嗯"}, []string{"，", "！", "。"}, []string{"我醒着。", "我在公司。", "我上线了。", "我在开会。", "我回来了。", "是本人。", "我是负责人。"}},
	} {
		for _, yes := range c.yes {
			for _, join := range c.joins {
				for _, self := range c.selves {
					if j := Classify(replyTo("en", yes+join+self)); j.Classification != "" {
						t.Errorf("%q is taken for %q (%s)", yes+join+self, j.Classification, j.Reasoning)
					}
				}
			}
		}
	}
	for _, more := range []string{"Yes. I'm on the train, go ahead.", "Yes, approved. I'm in Berlin until Friday.", "可以，同意付款。我在开会。"} {
		if j := Classify(replyTo("en", more)); j.Classification != form.Confirmed {
			t.Errorf("%q is taken for %q (%s)", more, j.Classification, j.Reasoning)
		}
	}
}

// TestClassify_Learned has replies that only the weights understand: their reasons name the words that weighed most, and what they decide
// has to be about what was asked.
func TestClassify_Learned(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ language, title, text, want, reason string }{
		{"zh", "", "这化肥价格怪得劲，赶紧给俺拉三吨。", form.Confirmed, "最有分量的词"},
		{"en", "", "这化肥价格怪得劲，赶紧给俺拉三吨。", form.Confirmed, "the words that weigh most"},
		{"zh", "支付发票 INV-1042", "这化肥价格怪得劲，赶紧给俺拉三吨。", "", ""},
		{"en", "", "My decision is to decline.", form.Rejected, "the words that weigh most"},
		{"zh", "", "My decision is to decline.", form.Rejected, "最有分量的词"},
	} {
		x := replyTo(c.language, c.text)
		x.Request.Title, x.Request.Description = c.title, ""
		if j := Classify(x); j.Classification != c.want || !strings.Contains(j.Reasoning, c.reason) {
			t.Errorf("%q to %q is taken for %q (%s), want %q with %q", c.text, c.title, j.Classification, j.Reasoning, c.want, c.reason)
		} else {
			t.Log(j.Reasoning)
		}
	}
}
