package ask

import "tandem/node"

// Deps are what the kinds of this package need of the program that they are part of.
type Deps struct {
	// Users are who can be asked; nil: nobody knows, and what questions name is taken as it is.
	Users Users
}

// Kinds lists every kind of this package.
func Kinds(d Deps) []node.Kind {
	list := []node.Kind{
		discordInteraction(),
		formSubmission(),
		gmailInteraction(),
		inAppApproval(),
		manualReview(),
		outlookInteraction(),
		slackInteraction(),
		teamsInteraction(),
		telegramInteraction(),
	}
	for i := range list {
		list[i] = knowsPeople(d.Users, list[i])
	}
	return list
}
