package lineage

import (
	"slices"

	"tandem/api"
	"tandem/engine"
	"tandem/text"
)

// AgainForStrangers is why a question is asked again as people are told who are not users of the workspace: they learn neither who works
// here nor values that the author did not show them.
func AgainForStrangers(list []api.AskedAgain) []api.AskedAgain {
	list = slices.Clone(list)
	for n := range list {
		list[n].By, list[n].TokenMadeBy, list[n].Output, list[n].OutputPart = "", "", nil, ""
	}
	return list
}

// AgainLines says in words why a question is asked again. There are none for one that is asked for the first time.
func AgainLines(language string, list []api.AskedAgain) []string {
	var lines []string
	for _, one := range list {
		by := withMaker(one.By, one.TokenMadeBy, language)
		if by == "" {
			by = text.Of("somebody").In(language)
		}
		switch engine.AgainAction(one.Action) {
		case engine.AgainStart:
			lines = append(lines, text.Of("Note: this execution begins at node %s, which comes after this question; so you are asked first.", one.NodeID).In(language))
		case engine.AgainFork:
			lines = append(lines, text.Of("Note: %s made a fork, so the earlier answer no longer counts and you are asked again.", by).In(language))
		case engine.AgainRetry:
			lines = append(lines, text.Of("Note: %s tries node %s again, which comes after this question; so you are asked again.", by, one.NodeID).In(language))
		case engine.AgainOutput:
			line := text.Of("Note: %s gave the output of node %s by hand, so you are asked again.", by, one.NodeID).In(language)
			if one.Output != nil {
				line += text.Of(" The output: %s", told{one.Output, one.OutputPart}.text(language)).In(language)
			}
			lines = append(lines, line)
		}
	}
	return lines
}
