// Package visitors serves the pages on which visitors start workflows: forms, and chats with streamed answers. A visitor is known by a
// cookie and by nothing else, unless the page is for users who are logged in.
//
// What a trigger's page shows and takes is said by its source (trigger.Presenter). A form that is sent and a message that is written are
// deliveries of that trigger, recorded with the start of their executions. A conversation is nothing but its messages and what came of
// them, so there is nothing of it that a crash could lose.
//
// Package server serves the pages; no package below that one may import it.
package visitors
