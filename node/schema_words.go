package node

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"tandem/payload"
)

// SchemaWords says what is wrong to people who have never seen the schema, in their language: "zh", or English.
func SchemaWords(p payload.SchemaProblem, language string) string {
	switch {
	case language == "zh" && p.Kind != nil:
		return chineseWords(p.Kind)
	case language == "zh" && p.Wild != "":
		return fmt.Sprintf("数字 %s 超出范围。", p.Wild)
	case language == "zh":
		return unlike
	case p.Kind != nil:
		if words := plainWords(p.Kind); words != "" {
			return words
		}
	}
	return p.Message
}

// plainWords are English words that say it plainer than the validator does; empty: there are none.
func plainWords(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.Maximum:
		return "it is more than " + decimal(k.Want)
	case *kind.Minimum:
		return "it is less than " + decimal(k.Want)
	case *kind.ExclusiveMaximum:
		return "it is not less than " + decimal(k.Want)
	case *kind.ExclusiveMinimum:
		return "it is not more than " + decimal(k.Want)
	case *kind.MultipleOf:
		return "it is not a multiple of " + decimal(k.Want)
	case *kind.MinLength:
		return fmt.Sprintf("it has less than %d characters", k.Want)
	case *kind.MaxLength:
		return fmt.Sprintf("it has more than %d characters", k.Want)
	case *kind.MinItems:
		return fmt.Sprintf("choose at least %d", k.Want)
	case *kind.MaxItems:
		return fmt.Sprintf("choose at most %d", k.Want)
	case *kind.Type:
		switch strings.Join(k.Want, " ") {
		case "integer":
			return "a whole number was expected"
		case "number":
			return "a number was expected"
		}
	}
	return ""
}

// unlike is all that can be said in Chinese of something that no kind is known of.
const unlike = "内容不符合要求。"

// chineseWords says in Chinese what a schema refuses. Every kind of the validator has words of its own; a test looks for one that has none.
func chineseWords(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.Type:
		names := make([]string, len(k.Want))
		for i, name := range k.Want {
			names[i] = typeNames(name)
		}
		return "类型不符：应为" + strings.Join(names, "或") + "。"
	case *kind.Enum:
		list, plain := shownValues(k.Want)
		if !plain {
			return "不在允许的取值之中。"
		}
		return "请从以下内容中选择：" + list + "。"
	case *kind.Const:
		value, plain := shownValues([]any{k.Want})
		if !plain {
			return "必须与规定的内容一致。"
		}
		return "必须是 " + value + "。"
	case *kind.Format:
		return "不是有效的" + formatNames(k.Want) + "。"
	case *kind.Pattern:
		return "格式不符合要求。"
	case *kind.MinLength:
		return fmt.Sprintf("字数过少，至少 %d 个字符。", k.Want)
	case *kind.MaxLength:
		return fmt.Sprintf("字数过多，最多 %d 个字符。", k.Want)
	case *kind.Minimum:
		return "数值过小，最小为 " + decimal(k.Want) + "。"
	case *kind.Maximum:
		return "数值过大，最大为 " + decimal(k.Want) + "。"
	case *kind.ExclusiveMinimum:
		return "数值过小，必须大于 " + decimal(k.Want) + "。"
	case *kind.ExclusiveMaximum:
		return "数值过大，必须小于 " + decimal(k.Want) + "。"
	case *kind.MultipleOf:
		return "必须是 " + decimal(k.Want) + " 的倍数。"
	case *kind.MinItems:
		return fmt.Sprintf("至少需要 %d 项。", k.Want)
	case *kind.MaxItems:
		return fmt.Sprintf("最多只能有 %d 项。", k.Want)
	case *kind.UniqueItems:
		return fmt.Sprintf("第 %d 项与第 %d 项重复。", k.Duplicates[0]+1, k.Duplicates[1]+1)
	case *kind.AdditionalItems:
		return fmt.Sprintf("最后 %d 项是多余的。", k.Count)
	case *kind.Contains:
		return "没有一项符合要求。"
	case *kind.MinContains:
		return fmt.Sprintf("至少要有 %d 项符合要求，现有 %d 项。", k.Want, len(k.Got))
	case *kind.MaxContains:
		return fmt.Sprintf("最多只能有 %d 项符合该要求，现有 %d 项。", k.Want, len(k.Got))
	case *kind.Required:
		return "缺少 " + quotedNames(k.Missing) + "。"
	case *kind.Dependency:
		return fmt.Sprintf("填写了“%s”时，还需要 %s。", k.Prop, quotedNames(k.Missing))
	case *kind.DependentRequired:
		return fmt.Sprintf("填写了“%s”时，还需要 %s。", k.Prop, quotedNames(k.Missing))
	case *kind.AdditionalProperties:
		return "不能有 " + quotedNames(k.Properties) + "。"
	case *kind.PropertyNames:
		return fmt.Sprintf("“%s”不能用作名称。", k.Property)
	case *kind.MinProperties:
		return fmt.Sprintf("至少需要 %d 个字段。", k.Want)
	case *kind.MaxProperties:
		return fmt.Sprintf("最多只能有 %d 个字段。", k.Want)
	case *kind.Not:
		return "这样的内容是不允许的。"
	case *kind.AllOf:
		return "没有满足全部要求。"
	case *kind.AnyOf:
		return "没有满足任何一种允许的形式。"
	case *kind.OneOf:
		if len(k.Subschemas) > 0 {
			return "同时满足了多种形式，只能满足其中一种。"
		}
		return "必须满足其中一种允许的形式。"
	case *kind.FalseSchema:
		return "这里不能填写任何内容。"
	case *kind.ContentEncoding:
		return fmt.Sprintf("内容不是有效的 %s 编码。", k.Want)
	case *kind.ContentMediaType:
		return fmt.Sprintf("内容不是 %s 类型。", k.Want)
	case *kind.ContentSchema:
		return "编码在其中的内容不符合要求。"
	case *kind.InvalidJsonValue:
		return "内容不是有效的 JSON 值。"
	case *kind.RefCycle:
		return "此项的校验规则循环引用，请联系流程的作者。"
	case *kind.Schema, *kind.Group, *kind.Reference: // what they are about is told by their causes
		return "内容没有通过校验。"
	}
	return unlike
}

func typeNames(name string) string {
	if known, ok := map[string]string{
		"string": "文字", "number": "数字", "integer": "整数", "boolean": "是或否（true 或 false）", "array": "列表", "object": "JSON 对象", "null": "空值（null）",
	}[name]; ok {
		return known
	}
	return " " + name
}

func formatNames(name string) string {
	if known, ok := map[string]string{
		"email": "电子邮件地址", "idn-email": "电子邮件地址", "date": "日期（如 2027-03-31）", "time": "时间（如 09:30:00Z）", "date-time": "日期时间（如 2027-03-31T09:30:00Z）", "duration": "时长（如 P1DT2H）",
		"uri": "网址", "iri": "网址", "uri-reference": "网址", "iri-reference": "网址", "hostname": "主机名", "idn-hostname": "主机名", "ipv4": " IPv4 地址", "ipv6": " IPv6 地址", "uuid": " UUID",
		"regex": "正则表达式", "json-pointer": " JSON 指针",
	}[name]; ok {
		return known
	}
	return " " + name
}

// shownValues lists values as people read them; not plain: some of them are lists or objects.
func shownValues(values []any) (list string, plain bool) {
	texts := make([]string, len(values))
	for i, v := range values {
		switch v.(type) {
		case []any, map[string]any:
			return "", false
		case nil:
			texts[i] = "null"
		default:
			texts[i] = fmt.Sprint(v)
		}
	}
	return strings.Join(texts, "、"), true
}

func quotedNames(names []string) string {
	texts := make([]string, len(names))
	for i, name := range names {
		texts[i] = "“" + name + "”"
	}
	return strings.Join(texts, "、")
}

// decimal writes a number as people do.
func decimal(r *big.Rat) string {
	if r.IsInt() {
		return r.Num().String()
	}
	f, _ := r.Float64()
	return strconv.FormatFloat(f, 'f', -1, 64)
}
