package slack

// words are what the channel itself says; what a message says comes with it, and the words of a form with the form.
type words struct {
	content, arguments, shortened, deadline, quorum, workflow, risk, high, medium string
	sure, sureText, yes, no, submit, close                                        string
	recorded, tryAgain, ended, unknownMail, reply, choose, pick                   string
}

func wordsIn(language string) words {
	if language == "zh" {
		return words{
			content: "内容", arguments: "参数", shortened: "（已截断）", deadline: "截止时间", quorum: "需要 %d 人同意",
			workflow: "工作流", risk: "风险", high: "高", medium: "中",
			sure: "确定吗？", sureText: "这是高风险操作：%s", yes: "确定", no: "返回",
			submit: "提交", close: "关闭",
			recorded: "已记录。", tryAgain: "未能记录您的回复，请重试。", ended: "这个问题已经结束。", unknownMail: "目前无法核对您的身份，请稍后重试。",
			reply: "回复", choose: "请选择", pick: "可多选",
		}
	}
	return words{
		content: "Content", arguments: "Arguments", shortened: " (shortened)", deadline: "Until", quorum: "%d approvals are needed",
		workflow: "Workflow", risk: "Risk", high: "high", medium: "medium",
		sure: "Are you sure?", sureText: "The risk of this is high: %s", yes: "Yes", no: "Back",
		submit: "Submit", close: "Close",
		recorded: "Recorded.", tryAgain: "Your answer could not be recorded. Please try again.", ended: "This question has ended.", unknownMail: "Who you are cannot be checked at the moment. Please try again later.",
		reply: "Answer", choose: "Choose one", pick: "Choose one or more",
	}
}
