package discord

// words are what the channel itself says; what a message says comes with it, and the words of a form with the form.
type words struct {
	content, arguments, shortened, deadline, quorum, workflow, risk, high, medium string
	choose, recorded, tryAgain, ended                                             string
}

func wordsIn(language string) words {
	if language == "zh" {
		return words{
			content: "内容", arguments: "参数", shortened: "（已截断）", deadline: "截止时间", quorum: "需要 %d 人同意",
			workflow: "工作流", risk: "风险", high: "高", medium: "中",
			choose:   "请选择",
			recorded: "已记录。", tryAgain: "未能记录您的回复，请重试。", ended: "这个问题已经结束。",
		}
	}
	return words{
		content: "Content", arguments: "Arguments", shortened: " (shortened)", deadline: "Until", quorum: "%d approvals are needed",
		workflow: "Workflow", risk: "Risk", high: "high", medium: "medium",
		choose:   "Choose",
		recorded: "Recorded.", tryAgain: "Your answer could not be recorded. Please try again.", ended: "This question has ended.",
	}
}
