package memory

import (
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// RuleConfidence is the most that the rules are sure of anything.
const RuleConfidence = 0.9

// entityWords are the sorts of entities that the rules find, with the other names that people have for them. The last of a sort that is
// also one of its own is what it counts as where nothing nearer is wanted. read-only
var entityWords = map[string][]string{
	"person":       {"people", "customer", "client", "user", "contact", "employee", "人物", "人"},
	"organization": {"organisation", "company", "business", "institution", "公司", "组织", "机构"},
	"location":     {"place", "city", "country", "address", "地点", "城市"},
	"product":      {"technology", "software", "tool", "system", "service", "产品", "技术", "concept"},
	"project":      {"program", "initiative", "项目", "concept"},
	"milestone":    {"deadline", "release", "里程碑", "concept"},
	"concept":      {"topic", "term", "概念"},
}

// RulesFind says whether the rules can find entities of a type.
func RulesFind(kind string) bool {
	kind = strings.ToLower(strings.TrimSpace(kind))
	for sort, words := range entityWords { // order does not matter: one is enough
		if kind == sort || slices.Contains(words, kind) {
			return true
		}
	}
	return false
}

// wantedType is the configured type that an entity of a sort has; empty: none.
func wantedType(sort string, types []string) string {
	for _, name := range append([]string{sort}, entityWords[sort]...) {
		for _, t := range types {
			if strings.EqualFold(strings.TrimSpace(t), name) {
				return strings.ToLower(strings.TrimSpace(t))
			}
		}
	}
	return ""
}

// The rules. What they take is written by anybody, so all of them are linear. They are made when they are wanted first, since most processes want none. read-only
var (
	english = later(`\b(\p{Lu}[\p{L}\d&'’-]*(?:\s+(?:of|the|de|van|von)?\s?\p{Lu}[\p{L}\d&'’-]*)*)`)
	// 某某公司, 某某大学: a run of characters that ends with what it is.
	chineseOrganization = later(`[\p{Han}A-Za-z0-9]{2,12}?(?:有限公司|公司|集团|大学|学院|银行|医院|研究院|研究所|委员会|协会)`)
	chineseLocation     = later(`[\p{Han}]{2,6}?(?:省|市|县|区|路|街|国|州市?)`)
	// What leads to the name of a place and is not part of it.
	chinesePlaceBefore = later(`^\p{Han}*(?:位于|住在|来自|前往|搬到|设在|负责|加入|代表|访问|联系|通知)([\p{Han}A-Za-z0-9]{2,})$`)
	// What points at something and names nothing: 我们国, 这个市.
	chinesePointing = later(`^(?:我们|你们|他们|她们|这个|那个|这家|那家|一个|一家|该|本|我|你|他|她|是)+`)
	// A surname and one or two characters, with what shows that it is a name.
	chinesePerson = later(`(?:[我他她]叫|名叫|姓名是|我是|联系人)([\p{Han}]{2,4}?)(?:[，。！？、,.\s]|$|在|的|和|是)|([王李张刘陈杨赵黄周吴徐孙胡朱高林何郭马罗梁宋郑谢韩唐冯于董萧程曹袁邓许傅沈曾彭吕][\p{Han}]{0,2})(?:先生|女士|老师|经理|总|博士|教授|医生)`)
	quotedProduct = later(`[《「“"]([^《》「」“”"\n]{2,40})[》」”"]`)
	worksAt       = later(`([\p{Lu}][\p{L}'’-]*(?:\s+[\p{Lu}][\p{L}'’-]*)*) (?:works|worked) (?:at|for) ([\p{Lu}][\p{L}\d&'’-]*(?:\s+[\p{Lu}][\p{L}\d&'’-]*)*)`)
	livesIn       = later(`([\p{Lu}][\p{L}'’-]*(?:\s+[\p{Lu}][\p{L}'’-]*)*) lives? in ([\p{Lu}][\p{L}'’-]*(?:\s+[\p{Lu}][\p{L}'’-]*)*)`)
	chineseAnd    = later(`[和与、]`)
	chineseWorks  = later(`([\p{Han}]{2,6}?)在([\p{Han}A-Za-z0-9]{2,16}?)(?:工作|上班|任职|就职)`)
	personTitle   = later(`^(?:Mr|Mrs|Ms|Dr|Prof)\b`)
	organization  = later(`(?i)\b(?:inc|corp|corporation|ltd|llc|gmbh|company|university|institute|bank|group|association|labs?|foundation|union|nations|council|ministry|agency|committee|department|commission|federation|museum|hospital)\b`)
	// A title that ends before the name, and an office that a name follows.
	titleBefore   = later(`\b(?:Mr|Mrs|Ms|Dr|Prof)\.?\s+$`)
	officeOf      = later(`^(?:CEO|CTO|CFO|COO|President|Director|Head|Manager|Chairman|Founder|Chief)\s+of\s+(?:the\s+)?`)
	locationAfter = later(`(?i)\b(?:in|at|from|to|near)\s+$`)
	// What stands after a name and tells what it is the name of.
	locationNext = later(`^\s+(?:office|city|branch|headquarters|airport|region|warehouse|store|site|area)\b`)
	productNext  = later(`^\s+(?:software|app|application|platform|tool|framework|library|service|database|plugin|device|deployment|server|api)s?\b`)
	versionNext  = later(`^\s+v?\d+(?:\.\d+)+\b`)
	personNext   = later(`^(?:\s+(?:from|of|at|and|called|said|says|asked|told|wrote|met|mentioned|works|worked|lives|is|was|has|will|can|wants|needs|likes|joined|left|leads|completed|reported|approved|sent|signed)\b|,|'s\b|’s\b)`)
	personBefore = later(`(?i)\b(?:that|by|with|met|and|ask|asked|tell|told|call|called|contact|thank|name is|i am|i'm)\s+$`)
	titleWord    = later(`^\p{Lu}\p{Ll}+$`)
	camelWord    = later(`\p{Ll}\p{Lu}`)
	projectNamed = later(`(\p{Lu}[\p{L}\d-]*(?:\s+[\p{L}\d-]+){0,2})\s+(?:project|initiative|program)\b|\b[Pp]roject\s+(\p{Lu}[\p{L}\d-]*)`)
	milestoneFor = later(`\b(Q[1-4](?:\s+20\d\d)?)\s+(?:(?:milestone|deadline|goal)\s+for\s+(?:the\s+)?([\p{L}\d-]+(?:\s+[\p{L}\d-]+){0,2})|milestone|release|deadline|launch)`)
	fromCompany  = later(`([\p{Lu}][\p{L}'’-]*(?:\s+[\p{Lu}][\p{L}'’-]*)+) (?:from|of|at) ([\p{Lu}][\p{L}\d&'’-]*(?:\s+[\p{Lu}][\p{L}\d&'’-]*)*)`)

	englishFact = later(`(?i)^(?:the\s+|a\s+|an\s+)?((?:(?:our|my|your|their|his|her|its|all|every|each|these|those|some|no)\s+)?.{1,80}?)(?:\s+(?:typically|usually|often|generally|always|also|currently|still|normally|mostly))?\s+(` +
		`(?:should|must|may|can|could|shall|will|cannot|has to|have to|needs? to)(?:\s+(?:not|only|never|always))?(?:\s+be)?\s+\p{L}+(?:\s+(?:within|by|for|with|to|in|on|at|after|before|from))?|` +
		`(?:do|does|did)(?:\s+not|n['’]t)\s+\p{L}+|` +
		`is not|isn't|is|are not|aren't|are|was|were|has|have|lives in|lives at|works at|works for|works as|works in|likes|loves|hates|prefers|uses?|needs|owns|wants|means|requires?|contains?|includes?|` +
		`supports?|belongs? to|depends? on|runs? on|costs?|provides?|offers?|manages|leads|reports to|speaks|moved to|created|founded|built)\s+(?:an?\s+|the\s+)?(.{1,200}?)[.!]?$`)
	// Verbs that may as well be nouns in the plural ("cold stores"): they count in a sentence that has none of the others.
	englishDoes = later(`(?i)^(?:the\s+|a\s+|an\s+)?((?:(?:our|my|your|their|his|her|its|all|every|each|these|those|some|no)\s+)?.{1,80}?)\s+(` +
		`(?:starts|begins|ends|opens|closes)(?:\s+(?:at|on|in|with))?|` +
		`stores|keeps|holds|sends|receives|handles|produces|sells|buys|delivers|serves|covers|follows|allows|replaces|employs|pays)\s+(?:an?\s+|the\s+)?(.{1,200}?)[.!]?$`)
	chineseFact = later(`^(.{1,30}?)(不是|是|不得|不应|应该|应当|必须|可以|位于|住在|属于|喜欢|讨厌|拥有|使用|需要|包含|包括|支持|依赖|等于|叫做|叫|有)(.{1,100}?)[。！.!]?$`)
)

// later is a pattern that is read when it is used first.
func later(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
}

// notNames begin a sentence more often than a name. read-only
var notNames = []string{
	"the", "a", "an", "this", "that", "these", "those", "it", "he", "she", "they", "we", "you", "i", "my", "your", "his",
	"her", "our", "their", "what",
	"when", "where", "who", "why", "how", "is", "are", "was", "were", "do", "does", "did", "can", "could", "will", "would",
	"should", "please", "thanks",
	"hello", "hi", "yes", "no", "ok", "and", "but", "or", "if", "in", "on", "at", "to", "for", "from", "with", "as", "by",
	"not", "there", "here", "then",
	"also", "yesterday", "today", "tomorrow", "now", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday", "user",
	"assistant", "system", "let", "so", "may", "must", "i'm", "i’m", "it's", "it’s",
	"thank", "ask", "tell", "call", "contact", "dear", "best", "kind", "regards", "sincerely", "since", "until", "during",
}

// notSubjects stand for somebody whose name is elsewhere. read-only
var notSubjects = []string{"he", "she", "it", "they", "we", "i", "you", "who", "this", "that", "everybody", "nobody", "somebody", "他", "她",
	"它", "我", "你", "他们", "她们", "我们", "你们", "大家"}

// months are written like names of places ("in March"). read-only
var months = []string{"January", "February", "March", "April", "May", "June", "July", "August", "September",
	"October", "November", "December"}

// ruleEntities finds entities and relations that are plain to see.
func ruleEntities(content string) foundEntities {
	f := entityFinder{content: content, seen: map[string]int{}}
	f.relations()
	f.projects()
	f.chinese()
	for _, at := range english().FindAllStringIndex(content, 500) {
		f.english(at[0], at[1])
	}
	return f.out
}

// entityFinder gathers what is found in a text: each name once, as what is most likely.
type entityFinder struct {
	content string
	out     foundEntities
	// seen is where in out a name is, in lower case.
	seen map[string]int
}

// addEntity adds a name, or makes one that is known already what is more likely.
func (f *entityFinder) addEntity(name, kind string, confidence float64) {
	name = strings.Trim(strings.Join(strings.Fields(name), " "), "'’-& ")
	name = strings.TrimSuffix(strings.TrimSuffix(name, "'s"), "’s")
	name = plainChinese(name)
	if utf8.RuneCountInString(name) < 2 || len(name) > 200 {
		return
	}
	key := strings.ToLower(name)
	if i, ok := f.seen[key]; ok {
		if confidence > f.out.Entities[i].Confidence {
			f.out.Entities[i].Type, f.out.Entities[i].Confidence = kind, confidence
		}
		return
	}
	f.seen[key] = len(f.out.Entities)
	f.out.Entities = append(f.out.Entities, foundEntity{Name: name, Type: kind, Confidence: confidence})
}

// relations finds who works and lives where.
func (f *entityFinder) relations() {
	relate := func(matches [][]string, kind, source, target string) {
		for _, m := range matches {
			// 张三和李四
			names := slices.DeleteFunc(chineseAnd().Split(m[1], -1),
				func(name string) bool { return slices.Contains(notSubjects, strings.ToLower(name)) })
			for _, name := range names {
				f.addEntity(name, source, 0.85)
			}
			f.addEntity(m[2], target, 0.85)
			for _, name := range names {
				f.out.Relationships = append(f.out.Relationships, foundRelation{plainChinese(name), plainChinese(m[2]), kind, 0.85})
			}
		}
	}
	relate(worksAt().FindAllStringSubmatch(f.content, 100), "works_at", "person", "organization")
	relate(slices.DeleteFunc(fromCompany().FindAllStringSubmatch(f.content, 100),
		func(m []string) bool { return !organization().MatchString(m[2]) }), "works_at", "person", "organization")
	relate(livesIn().FindAllStringSubmatch(f.content, 100), "lives_in", "person", "location")
	relate(chineseWorks().FindAllStringSubmatch(f.content, 100), "works_at", "person", "organization")
}

// projects finds projects that are called so, and milestones.
func (f *entityFinder) projects() {
	for _, m := range projectNamed().FindAllStringSubmatch(f.content, 100) {
		words := strings.Fields(m[1] + m[2])
		for len(words) > 0 && slices.Contains(notNames, strings.ToLower(words[0])) {
			words = words[1:]
		}
		if name := strings.Join(words, " "); name != "" && titleLike(name) {
			f.addEntity(name, "project", 0.85)
		}
	}
	for _, m := range milestoneFor().FindAllStringSubmatch(f.content, 100) {
		name := m[0]
		if m[2] != "" {
			name = m[1] + " " + m[2]
		}
		f.addEntity(name, "milestone", 0.85)
	}
}

// chinese finds names that Chinese writes in ways of its own, and products in quotation marks.
func (f *entityFinder) chinese() {
	for _, m := range chinesePerson().FindAllStringSubmatch(f.content, 200) {
		if name := m[1] + m[2]; !strings.HasSuffix(name, "人") { // 中国人
			f.addEntity(name, "person", 0.8)
		}
	}
	for _, m := range chineseOrganization().FindAllString(f.content, 200) {
		f.addEntity(chinesePointing().ReplaceAllString(m, ""), "organization", 0.8)
	}
	for _, m := range chineseLocation().FindAllString(f.content, 200) {
		f.addEntity(chinesePointing().ReplaceAllString(m, ""), "location", 0.7)
	}
	for _, m := range quotedProduct().FindAllStringSubmatch(f.content, 200) {
		f.addEntity(m[1], "product", 0.7)
	}
}

// english adds what is written like a name from one place of the text to another, as what the words around it say it is.
func (f *entityFinder) english(from, to int) {
	name := f.content[from:to]
	starts := from == 0 || strings.ContainsAny(f.content[max(0, from-2):from], ".!?\n:。")
	words := strings.Fields(name)
	for dated := false; len(words) > 0 && (slices.Contains(notNames, strings.ToLower(words[0])) || dated &&
		slices.Contains(months, words[0])); {
		dated = slices.Contains([]string{"in", "since", "until", "during", "by"}, strings.ToLower(words[0])) // In March Tesla, and not: ask April Jones
		words, starts = words[1:], false
	}
	// ProjectNamed has taken that.
	if len(words) == 0 || len(words) == 1 && personTitle().MatchString(words[0]) && !strings.ContainsAny(words[0], "-'’") &&
		len(words[0]) < 5 || len(words) == 1 && slices.Contains(months, words[0]) || len(words) > 1 && words[0] == "Project" {
		return
	}
	name = strings.Join(words, " ")
	if office := officeOf().FindString(name); office != "" && office != name+" " {
		f.addEntity(name[len(office):], "organization", 0.8)
		return
	}
	if slices.ContainsFunc(f.out.Entities, func(e foundEntity) bool {
		known, part := strings.ToLower(e.Name), strings.ToLower(name)
		return strings.HasPrefix(known, part+" ") || strings.HasSuffix(known, " "+part)
	}) {
		return // the beginning or the end of a longer name
	}
	before, after := f.content[max(0, from-12):from], f.content[to:min(len(f.content), to+24)]
	if version := versionNext().FindString(after); version != "" {
		f.addEntity(name+version, "product", RuleConfidence)
		return
	}
	kind, confidence := kindOfName(name, words, before, after, starts)
	f.addEntity(name, kind, confidence)
}

// kindOfName says what a name in English is most likely the name of, by its words, those before and after it, and whether it starts a
// sentence.
func kindOfName(name string, words []string, before, after string, starts bool) (kind string, confidence float64) {
	titled := len(words) > 1 && len(words) < 4 && !slices.ContainsFunc(words, func(w string) bool { return !titleWord().MatchString(w) })
	switch {
	case personTitle().MatchString(name), titleBefore().MatchString(before):
		return "person", 0.85
	case organization().MatchString(name):
		return "organization", RuleConfidence
	case productNext().MatchString(after):
		return "product", 0.85
	case locationNext().MatchString(after):
		return "location", 0.85
	case titled && (personNext().MatchString(after) || personBefore().MatchString(before)) && !locationAfter().MatchString(before):
		return "person", 0.85
	case camelWord().MatchString(name):
		return "product", 0.8
	case locationAfter().MatchString(before):
		return "location", 0.8
	case len(words) == 2 && !starts:
		return "person", 0.7
	case len(words) == 1 && starts:
		return "concept", 0.4 // any word begins a sentence so
	}
	return "concept", 0.7
}

// titleLike says that a name begins like one.
func titleLike(name string) bool {
	r, _ := utf8.DecodeRuneInString(name)
	return unicode.IsUpper(r)
}

// plainChinese takes away what stands before and after a name in Chinese, where no space does.
func plainChinese(name string) string {
	if m := chinesePlaceBefore().FindStringSubmatch(name); m != nil {
		name = m[1]
	}
	for _, word := range []string{"在", "是", "和", "与", "到", "从", "向"} {
		if rest, ok := strings.CutPrefix(name, word); ok && utf8.RuneCountInString(rest) > 1 {
			name = rest
		}
	}
	for _, title := range []string{"先生", "女士", "老师", "经理", "博士", "教授", "医生"} {
		if rest, ok := strings.CutSuffix(name, title); ok && rest != "" {
			name = rest
		}
	}
	return name
}

// ruleFacts finds the sentences that say what something is, has or does.
func ruleFacts(content string) []Fact {
	var list []Fact
	for _, s := range sentences(content) {
		if utf8.RuneCountInString(s) > 300 || strings.ContainsAny(s, "?？") {
			continue
		}
		for _, rule := range []*regexp.Regexp{englishFact(), englishDoes(), chineseFact()} {
			m := rule.FindStringSubmatch(s)
			if m == nil {
				continue
			}
			subject := strings.TrimSpace(m[1])
			if strings.Count(subject, " ") > 7 || slices.Contains([]string{"it", "this", "that", "there", "what", "who", "这", "那", "它"},
				strings.ToLower(subject)) {
				break
			}
			list = append(list, Fact{Subject: subject, Predicate: strings.ToLower(m[2]),
				Object: strings.TrimSpace(m[3]), Confidence: RuleConfidence})
			break
		}
	}
	return list
}
