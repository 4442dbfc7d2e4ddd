package human

import (
	"fmt"
	"slices"
	"strings"

	"tandem/api"
	"tandem/engine"
	"tandem/host"
)

// AgainOf tells why a question is asked again.
func AgainOf(causes []host.AskedAgain) []api.AskedAgain {
	var told []api.AskedAgain
	for _, c := range causes {
		told = append(told, api.AskedAgain{Action: string(c.Action), NodeID: c.Node, By: c.By, Output: c.Value, OutputPart: c.Part})
	}
	return told
}

// showAgain lets a question say why it is asked again. Strangers learn neither who works here nor values that the author did not
// show them.
func (r *Request) showAgain(list []api.AskedAgain) {
	r.Again = slices.Clone(list)
	if r.Access != "link" && r.Access != "public" {
		return
	}
	for n := range r.Again {
		r.Again[n].By, r.Again[n].Output, r.Again[n].OutputPart = "", nil, ""
	}
}

// AgainLines says in words why a question is asked again. There are none for one that is asked for the first time.
func AgainLines(language string, list []api.AskedAgain) []string {
	say := func(zh, en string, args ...any) string {
		return fmt.Sprintf(pick(strings.ToLower(language), zh, en), args...)
	}
	var lines []string
	for _, one := range list {
		by := one.By
		if by == "" {
			by = say("有人", "somebody")
		}
		switch engine.AgainAction(one.Action) {
		case engine.AgainStart:
			lines = append(lines, say("注意：这次执行从节点 %s 开始，它在本问题之后，因此先询问。", "Note: this execution begins at node %s, which comes after this question; so you are asked first.", one.NodeID))
		case engine.AgainFork:
			lines = append(lines, say("注意：%s 建立了分叉，之前的答复不再有效，因此再次询问。", "Note: %s made a fork, so the earlier answer no longer counts and you are asked again.", by))
		case engine.AgainRetry:
			lines = append(lines, say("注意：%s 重试本问题之后的节点 %s，因此再次询问。", "Note: %s tries node %s again, which comes after this question; so you are asked again.", by, one.NodeID))
		case engine.AgainOutput:
			line := say("注意：%s 手工给出了节点 %s 的输出，因此再次询问。", "Note: %s gave the output of node %s by hand, so you are asked again.", by, one.NodeID)
			if one.Output != nil {
				line += say("输出：%s", " The output: %s", told{one.Output, one.OutputPart}.text(language))
			}
			lines = append(lines, line)
		}
	}
	return lines
}
