// Package respond is the pages on which people answer a question who have a link to it: the form as a browser draws it, what a browser
// sends, its files, and what is said when there is nothing to answer any more. What is asked and what an answer is, package human says;
// here it is drawn.
//
// Package server serves the pages; no package below that one may import it.
package respond
