package discord

// words are what the channel itself says; what a message says comes with it.
type words struct {
	content, arguments, shortened, deadline, quorum, workflow, risk, high, medium  string
	form, link, inbox, notes, evidence, choose, yesNo, passFail, oneOf, from, date string
	recorded, tryAgain, ended                                                      string
}

func wordsIn(language string) words {
	if language == "zh" {
		return words{
			content: "内容", arguments: "参数", shortened: "（已截断）", deadline: "截止时间", quorum: "需要 %d 人同意",
			workflow: "工作流", risk: "风险", high: "高", medium: "中",
			form: "填写", link: "打开回复页面", inbox: "请在 Tandem 收件箱中回复。", notes: "备注", evidence: "依据：%s", choose: "请选择",
			yesNo: "是 / 否", passFail: "通过 / 不通过", oneOf: "可选：%s", from: "%s 到 %s 之间的数字", date: "格式：2006-01-02",
			recorded: "已记录。", tryAgain: "未能记录您的回复，请重试。", ended: "这个问题已经结束。",
		}
	}
	return words{
		content: "Content", arguments: "Arguments", shortened: " (shortened)", deadline: "Until", quorum: "%d approvals are needed",
		workflow: "Workflow", risk: "Risk", high: "high", medium: "medium",
		form: "Fill in", link: "Open the response page", inbox: "Answer it in the inbox of Tandem.", notes: "Notes", evidence: "Evidence: %s", choose: "Choose",
		yesNo: "yes / no", passFail: "pass / fail", oneOf: "one of: %s", from: "a number from %s to %s", date: "like 2006-01-02",
		recorded: "Recorded.", tryAgain: "Your answer could not be recorded. Please try again.", ended: "This question has ended.",
	}
}
