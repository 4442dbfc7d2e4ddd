package api

import "encoding/json"

// InteractionForm is what there is to fill in to answer a question, in the language of the reader: the same on every page and in every
// medium.
type InteractionForm struct {
	Language    string      `json:"language" enum:"en,zh"`
	Title       string      `json:"title,omitempty"`
	Description string      `json:"description,omitempty"`
	Lines       []string    `json:"lines,omitempty" doc:"what has to be known before answering, in words: that the execution is a fork, what was edited, why it is asked again"`
	EditLines   []int       `json:"edit_lines,omitempty" doc:"which of the lines, counted from 0, tell an edited value beside the original, as request_data.fork has them"`
	Entries     []FormEntry `json:"entries" doc:"what is filled in, in the order in which it is shown"`
}

// FormEntry is one thing to fill in.
type FormEntry struct {
	Group     string          `json:"group,omitempty" doc:"the object of the answer in which the value stands; absent: at its top"`
	Name      string          `json:"name,omitempty" doc:"the key under which the value stands; without group and name the value is the whole answer"`
	Kind      string          `json:"kind" enum:"line,area,number,email,date,yes_no,tick,one,some,score,file,json"`
	Label     string          `json:"label,omitempty"`
	About     string          `json:"about,omitempty" doc:"what its author says of it"`
	Limits    string          `json:"limits,omitempty" doc:"what may be filled in, as a sentence"`
	Required  bool            `json:"required,omitempty"`
	Choices   []FormChoice    `json:"choices,omitempty"`
	Open      bool            `json:"open,omitempty" doc:"besides the choices something else may be written"`
	Min       *float64        `json:"min,omitempty"`
	Max       *float64        `json:"max,omitempty"`
	MinLength *int            `json:"min_length,omitempty"`
	MaxLength *int            `json:"max_length,omitempty"`
	MinItems  *int            `json:"min_items,omitempty"`
	MaxItems  *int            `json:"max_items,omitempty"`
	Whole     bool            `json:"whole,omitempty" doc:"a number without a fraction"`
	Default   json.RawMessage `json:"default,omitempty" doc:"what is filled in unless somebody changes it"`
	Known     bool            `json:"known,omitempty" doc:"the default is what the step has already: it goes along with an answer and is none by itself"`
	Decides   bool            `json:"decides,omitempty" doc:"the whole question is about it: each of its choices may be a button that answers"`
	OnlyWith  string          `json:"only_with,omitempty" doc:"the choice of the deciding entry with which this one makes sense; absent: any"`
	List      bool            `json:"list,omitempty" doc:"the answer has a list where one thing is chosen"`
	Anything  bool            `json:"anything,omitempty" doc:"of the kind json: what does not begin like JSON is a text"`
	Words     map[string]bool `json:"words,omitempty" doc:"of the kind score: the words for pass (true) and fail (false) that may be typed, in small letters"`
}

// FormChoice is something to choose.
type FormChoice struct {
	Value   string          `json:"value"`
	Label   string          `json:"label"`
	Raw     json.RawMessage `json:"raw" doc:"the value as the answer has it"`
	Outcome string          `json:"outcome,omitempty" enum:"confirmed,rejected,none" doc:"what choosing it decides"`
}
