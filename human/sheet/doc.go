// Package sheet draws forms as pages of a browser, and reads what a browser sends of them: one renderer for the pages on which people
// answer questions, for public forms, for the questions in a chat, and for the inputs of a workflow that somebody starts by hand. Pages
// need no script and load nothing.
//
// It does not know routes or questions: package form says what is to be filled in, and the package that serves a page says what becomes of
// it.
package sheet
