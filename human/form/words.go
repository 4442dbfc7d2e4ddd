package form

import (
	"fmt"
	"strings"
)

// Text is a text in the languages that people read. Where an order is needed, English goes first.
type Text struct{ English, Chinese string }

// In is the text in a language: Chinese for zh and its kinds, English for all else.
func (t Text) In(language string) string {
	if IsChinese(language) {
		return t.Chinese
	}
	return t.English
}

// IsChinese says that a reader of a language reads Chinese.
func IsChinese(language string) bool { return strings.HasPrefix(strings.ToLower(language), "zh") }

// With puts values into the holes of both texts. A text may leave some of them out.
func (t Text) With(args ...any) Text {
	fill := func(format string) string {
		if !strings.Contains(format, "%") {
			return format
		}
		return fmt.Sprintf(format, args...)
	}
	return Text{fill(t.English), fill(t.Chinese)}
}

// as is a text that is the same in all languages: what an author wrote.
func as(text string) Text { return Text{text, text} }

// What forms say. They are read-only.
var (
	wordNotes       = Text{"Notes (optional)", "备注（可选）"}
	promptNotes     = Text{"Note", "备注"}
	wordDescription = Text{"Note (optional)", "说明（可选）"}
	promptWords     = Text{"In your own words", "用您自己的话说明"}
	wordChoose      = Text{"Choose", "请选择"}
	wordSeveral     = Text{"You may choose several.", "可多选。"}
	wordResult      = Text{"Result (JSON, optional)", "结果（JSON，可选）"}
	promptResult    = Text{"Its result, as JSON", "它的结果（JSON）"}
	wordOnlyDone    = Text{"Only with “It was done”: what the step would have returned.", "仅当选择“已完成”时需要：该步骤本应给出的结果。"}
	wordRaise       = Text{"Raise the budget by", "预算增加多少"}
	wordAnswer      = Text{"Answer (JSON)", "答复（JSON）"}
	wordObject      = Text{"A JSON object.", "一个 JSON 对象。"}
	promptWhole     = Text{"The answer, as JSON", "答复（JSON）"}
	wordEvidence    = Text{"Evidence for “%s”", "“%s”的依据"}
	promptEvidence  = Text{"What it rests on", "依据"}
	promptPasses    = Text{"%s (does it pass?)", "%s（是否通过？）"}
	promptAbout     = Text{"%s (%s)", "%s（%s）"}
	promptMail      = Text{"%s (a mail address)", "%s（电子邮件地址）"}
	promptDate      = Text{"%s (a date like 2026-01-31)", "%s（日期，例如 2026-01-31）"}
	promptFile      = Text{"%s (a file)", "%s（文件）"}
	promptScale     = Text{"%s (%s to %s)", "%s（%s 到 %s）"}
	promptScore     = Text{"%s (%s to %s, a letter from A to F, or pass or fail)", "%s（%s 到 %s、A 到 F 的字母，或通过、不通过）"}
	wordAllow       = Text{"Allow it?", "是否允许？"}
	wordGoOn        = Text{"Go on?", "是否继续？"}
	wordAccept      = Text{"Accept it?", "是否接受？"}
	wordWasDone     = Text{"Was it done?", "已经完成了吗？"}
	wordYes         = Text{"Yes", "是"}
	wordNo          = Text{"No", "否"}
	wordConfirm     = Text{"Confirm", "确认"}
	wordCancel      = Text{"Cancel", "取消"}
	wordAccepts     = Text{"Accept", "接受"}
	wordDeclines    = Text{"Do not accept", "不接受"}
	wordDone        = Text{"It was done", "已完成"}
	wordNotDone     = Text{"It was not: do it now", "未完成，现在执行"}
	wordStop        = Text{"Stop", "停止"}
	wordPass        = Text{"Pass", "通过"}
	wordFail        = Text{"Fail", "不通过"}

	limitFromTo      = Text{"From %s to %s.", "从 %s 到 %s。"}
	limitFrom        = Text{"At least %s.", "最小为 %s。"}
	limitTo          = Text{"At most %s.", "最大为 %s。"}
	limitLengths     = Text{"From %d to %d characters.", "%d 到 %d 个字符。"}
	limitLonger      = Text{"At least %d characters.", "至少 %d 个字符。"}
	limitShorter     = Text{"At most %d characters.", "最多 %d 个字符。"}
	limitItems       = Text{"Choose at least %d.", "至少选择 %d 项。"}
	limitFewer       = Text{"Choose at most %d.", "最多选择 %d 项。"}
	limitItemsFromTo = Text{"Choose %d to %d.", "选择 %d 到 %d 项。"}
	limitScore       = Text{"From %s to %s, a letter from A to F, or pass or fail.", "%s 到 %s 的数值、A 到 F 的字母，或通过、不通过。"}
	limitDate        = Text{"Year-month-day, such as 2027-03-31.", "年-月-日，例如 2027-03-31。"}
	limitFile        = Text{"At most 10 MiB.", "最大 10 MiB。"}
	limitYesNo       = Text{"yes or no", "是 / 否"}
	limitPassFail    = Text{"pass or fail", "通过 / 不通过"}
	limitOneOf       = Text{"one of: %s", "可选：%s"}
	limitSomeOf      = Text{"some of: %s", "可多选：%s"}
)

// What is wrong with an answer. They are read-only.
var (
	wrongRequired     = Text{"it is required", "此项必填。"}
	wrongNoEvidence   = Text{"it is required: say what the score rests on", "此项必填：请说明评分的依据。"}
	wrongNoChoice     = Text{"it is missing; choose one of %s", "请选择一项：%s。"}
	wrongNoChoices    = Text{"it is missing; choose some of %s", "请从以下选项中选择：%s。"}
	wrongNoAnswer     = Text{"the answer is missing", "没有答复内容。"}
	wrongNoneOf       = Text{"%q is none of %s", "%q 不在可选项之中：%s。"}
	wrongTwice        = Text{"%q is chosen twice", "%q 被选择了两次。"}
	wrongSeveral      = Text{"only one may be chosen, not %d", "只能选择一项。"}
	wrongNumber       = Text{"a number was expected", "请填写数字。"}
	wrongRange        = Text{"a number from %s to %s was expected", "请填写 %s 到 %s 的数值。"}
	wrongScore        = Text{"a number from %s to %s, a letter from A to F, true or false was expected", "请填写 %s 到 %s 的数值、A 到 F 的字母，或是与否。"}
	wrongLetter       = Text{"A, B, C, D or F was expected", "请选择 A、B、C、D 或 F。"}
	wrongYesNo        = Text{"true or false was expected", "请选择是或否。"}
	wrongYesNoTyped   = Text{"y or n was expected", "请填写 y 或 n（是或否）。"}
	wrongRaise        = Text{"a positive number was expected: by how much the budget is raised", "请填写正数：预算增加多少。"}
	wrongText         = Text{"a text was expected", "请填写文字。"}
	wrongConfirm      = Text{"true was expected, or false to cancel", "请选择确认或取消。"}
	wrongApprove      = Text{"approve or reject was expected", "请选择批准或拒绝。"}
	wrongNeither      = Text{"%q is neither approve nor reject", "%q 既不是批准也不是拒绝。"}
	wrongBoth         = Text{"it says both yes and no", "答复自相矛盾：既同意又拒绝。"}
	wrongNoOutcome    = Text{"an object with an outcome was expected: done, not_done or stop", "请说明结果：已完成（done）、未完成（not_done）或停止（stop）。"}
	wrongOutcome      = Text{"%q decides nothing; say %s", "%q 不能作为结果；请选择 %s。"}
	wrongResult       = Text{"only what was done has a result; leave it out", "只有“已完成”才有结果，请去掉结果。"}
	wrongObject       = Text{"an object was expected", "请填写一个 JSON 对象。"}
	wrongObjectLike   = Text{"an object was expected: %s", "请填写一个 JSON 对象：%s"}
	wrongNothing      = Text{"nothing was given; fill in %s, or say in description what you know; to end it, cancel the execution", "什么都没有填写；请填写 %s，或在 description 中说明你知道的内容；若要结束，请取消该执行。"}
	wrongNoField      = Text{"there is no such field", "没有这一项。"}
	wrongNoFieldOf    = Text{"there is no such field; there are %s", "没有这一项；可填写的有 %s。"}
	wrongNoFieldNear  = Text{"there is no such field; there are %s; did you mean %q?", "没有这一项；可填写的有 %s；你是指 %q 吗？"}
	wrongNoCriterion  = Text{"there is no such criterion", "没有这一项标准。"}
	wrongNoCriteria   = Text{"there is nothing to judge by", "没有评审标准。"}
	wrongMail         = Text{"%q is no mail address", "请填写有效的电子邮件地址。"}
	wrongDate         = Text{"%q is no date like 2006-01-02", "请按 2027-03-31 的格式填写日期。"}
	wrongLess         = Text{"it is less than %s", "数值过小，最小为 %s。"}
	wrongMore         = Text{"it is more than %s", "数值过大，最大为 %s。"}
	wrongShort        = Text{"it has less than %d characters", "字数过少，至少 %d 个字符。"}
	wrongLong         = Text{"it has more than %d characters", "字数过多，最多 %d 个字符。"}
	wrongPattern      = Text{"it does not match %q", "格式不符合要求。"}
	wrongFileSize     = Text{"the file is larger than %d bytes", "文件超过 10 MiB。"}
	wrongFile         = Text{`a file was expected: {"name", "content_type", "base64"}`, "请选择一个文件。"}
	wrongStored       = Text{"%q is no stored value", "找不到已上传的文件，请重新上传。"}
	wrongBase64       = Text{"it is no base64", "文件内容无法读取，请重新上传。"}
	wrongShape        = Text{"it has the wrong form: %s", "答复的格式不正确。"}
	wrongUnreadable   = Text{"it cannot be read: %v", "内容无法读取。"}
	wrongSchema       = Text{"its schema cannot be used: %s", "此项的校验规则有误，请联系流程的作者。"}
	wrongRule         = Text{"its validation cannot be used: %v", "此项的校验规则有误，请联系流程的作者。"}
	wrongRepeatedKey  = Text{"%s", "同一个键出现了两次，请只保留一个。"}
	wrongSyntax       = Text{"%s", "这不是有效的 JSON。"}
	wrongDocument     = Text{"%s", "内容无法读取。"}
	wrongTypedJSON    = Text{"this is not valid JSON", "这不是有效的 JSON。"}
	wrongTypedTooLong = Text{"this is too long", "内容过长。"}
	wrongGone         = Text{"what was chosen is not an option of this question any more; look at it again", "所选内容已不是此问题的选项，请重新查看。"}
	wrongNoButton     = Text{"Answer with one of the buttons.", "请点击其中一个按钮作答。"}
)

// captions are what options are called that everybody knows.
func captions() map[string]Text {
	return map[string]Text{
		"approve": {"Approve", "批准"}, "reject": {"Reject", "拒绝"}, "yes": wordYes, "no": wordNo,
		"confirm": wordConfirm, "deny": {"Deny", "否决"},
	}
}

// Caption is what an option is called for readers of a language: its label, else words that everybody knows for its value, else the value.
func Caption(o Option, language string) string {
	if o.Label != "" && o.Label != o.Value {
		return o.Label
	}
	if known, ok := captions()[strings.ToLower(o.Value)]; ok {
		return known.In(language)
	}
	return o.Value
}
