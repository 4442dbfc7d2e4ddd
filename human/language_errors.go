package human

import (
	"encoding/json"
	"regexp"
	"strings"
	"sync"

	"tandem/api"
	"tandem/fault"
)

// saying is an English sentence about an answer, with holes, and the Chinese one for it.
type saying struct {
	english *regexp.Regexp
	chinese string
}

// sayings are all that this package says of an answer that cannot be taken; what a JSON Schema refuses comes with its own words, see
// [node.SchemaProblem]. It is read-only once made.
var sayings = sync.OnceValue(func() []saying {
	var list []saying
	for _, pair := range [][2]string{
		{`it is required: say what the score rests on`, "此项必填：请说明评分的依据。"},
		{`it is required.*`, "此项必填。"},
		{`it is missing; choose some of (.+)`, "请从以下选项中选择：$1。"},
		{`it is missing; choose one of (.+)`, "请选择一项：$1。"},
		{`it is missing.*`, "请选择一项。"},
		{`the answer is missing`, "没有答复内容。"},
		{`(".*") is none of (.+)`, "$1 不在可选项之中：$2。"},
		{`(".*") is chosen twice`, "$1 被选择了两次。"},
		{`only one may be chosen.*`, "只能选择一项。"},
		{`choose at least (\S+)`, "至少选择 $1 项。"},
		{`choose at most (\S+)`, "最多选择 $1 项。"},
		{`a number from (\S+) to (\S+), a letter from A to F, true or false was expected`, "请填写 $1 到 $2 的数值、A 到 F 的字母，或是与否。"},
		{`a number from (\S+) to (\S+) was expected`, "请填写 $1 到 $2 的数值。"},
		{`a number was expected`, "请填写数字。"},
		{`a whole number was expected`, "请填写整数。"},
		{`a positive number was expected.*`, "请填写正数：预算增加多少。"},
		{`a text was expected`, "请填写文字。"},
		{`true or false was expected`, "请选择是或否。"},
		{`true was expected, or false to cancel`, "请选择确认或取消。"},
		{`approve or reject was expected`, "请选择批准或拒绝。"},
		{`(".*") is neither approve nor reject`, "$1 既不是批准也不是拒绝。"},
		{`it says both yes and no`, "答复自相矛盾：既同意又拒绝。"},
		{`A, B, C, D or F was expected`, "请选择 A、B、C、D 或 F。"},
		{`an object with an outcome was expected.*`, "请说明结果：已完成（done）、未完成（not_done）或停止（stop）。"},
		{`(".*") decides nothing; say (.+)`, "$1 不能作为结果；请选择 $2。"},
		{`only what was done has a result; leave it out`, "只有“已完成”才有结果，请去掉结果。"},
		{`an object was expected: (\{.+)`, "请填写一个 JSON 对象：$1"},
		{`an object was expected`, "请填写一个 JSON 对象。"},
		{`nothing was given; fill in (.+), or say in description what you know; to end it, cancel the execution`, "什么都没有填写；请填写 $1，或在 description 中说明你知道的内容；若要结束，请取消该执行。"},
		{`there is no such field; there are (.+); did you mean "(.+)"\?`, "没有这一项；可填写的有 $1；你是指“$2”吗？"},
		{`there is no such field; there are (.+)`, "没有这一项；可填写的有 $1。"},
		{`; did you mean "(.+)"\?`, "；你是指“$1”吗？"},
		{`(".*") is no mail address`, "请填写有效的电子邮件地址。"},
		{`(".*") is no date like 2006-01-02`, "请按 2027-03-31 的格式填写日期。"},
		{`it is less than (\S+)`, "数值过小，最小为 $1。"},
		{`it is more than (\S+)`, "数值过大，最大为 $1。"},
		{`it has less than (\S+) characters`, "字数过少，至少 $1 个字符。"},
		{`it has more than (\S+) characters`, "字数过多，最多 $1 个字符。"},
		{`it does not match .*`, "格式不符合要求。"},
		{`there is no such field`, "没有这一项。"},
		{`there is no such criterion`, "没有这一项标准。"},
		{`there is nothing to judge by`, "没有评审标准。"},
		{`the file is larger than \d+ bytes`, "文件超过 10 MiB。"},
		{`a file was expected.*`, "请选择一个文件。"},
		{`(".*") is no stored value`, "找不到已上传的文件，请重新上传。"},
		{`it is no base64`, "文件内容无法读取，请重新上传。"},
		{`it has the wrong form.*`, "答复的格式不正确。"},
		{`it cannot be read.*`, "内容无法读取。"},
		{`its (?:schema|validation) cannot be used.*`, "此项的校验规则有误，请联系流程的作者。"},
		{`the key stands twice.*`, "同一个键出现了两次，请只保留一个。"},
		{`it is not valid JSON.*`, "这不是有效的 JSON。"},
		{`it is not valid UTF-8.*`, "内容不是有效的 UTF-8 文本。"},
		{`it is nested more than .*`, "内容嵌套过深。"},
		{`you have answered already.*`, "您已经答复过了，还在等待其他人的答复。"},
		{`what you were shown is not what is asked.*`, "您看到的内容与所询问的不一致，请重新查看后再答复。"},
	} {
		list = append(list, saying{regexp.MustCompile(`(?s)^(?:` + pair[0] + `)$`), pair[1]})
	}
	return list
})

// InLanguage puts what is wrong with an answer into the language of who gave it. What an author has written for a field stays as it is.
func InLanguage(language, message string) string {
	if language != "zh" {
		return message
	}
	for _, s := range sayings() {
		if s.english.MatchString(message) {
			return s.english.ReplaceAllString(message, s.chinese)
		}
	}
	return message
}

// FieldIn says what is wrong with a field in the language of who filled it in.
func FieldIn(language string, f api.FaultField) string {
	if language == "zh" && f.MessageZH != "" {
		return f.MessageZH
	}
	return InLanguage(language, f.Message)
}

// wrongIn is all that is wrong with an answer, in a language.
func wrongIn(language string, e *fault.Error) string {
	if language != "zh" {
		return e.Message
	}
	raw, err := json.Marshal(e.Details["fields"])
	var fields []api.FaultField
	if err != nil || json.Unmarshal(raw, &fields) != nil || len(fields) == 0 {
		return InLanguage(language, e.Message)
	}
	parts := make([]string, len(fields))
	for n, f := range fields {
		name := f.Path[strings.LastIndexByte(f.Path, '.')+1:]
		parts[n] = name + "：" + FieldIn(language, f)
	}
	return strings.Join(parts, " ")
}
