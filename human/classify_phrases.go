package human

import (
	_ "embed" // the phrases are a file
	"strings"
)

// phraseText has the phrases of each class. It is read-only.
//
//go:embed classify_phrases.txt
var phraseText string

// phraseList is phrases of one class.
type phraseList struct {
	is      class
	phrases []string
}

// sections are the classes by the names of their sections.
func sections() map[string]class {
	return map[string]class{
		"ack":       saysAck,
		"approval":  saysApproval,
		"change":    saysChange,
		"condition": saysCondition,
		"courtesy":  saysCourtesy,
		"deferral":  saysDeferral,
		"domain":    saysDomain,
		"elsewhere": saysElsewhere,
		"ending":    saysEnding,
		"filler":    saysFiller,
		"fine":      saysFine,
		"future":    saysFuture,
		"glue":      saysGlue,
		"go":        saysGo,
		"hedge":     saysHedge,
		"indirect":  saysIndirect,
		"injection": saysInjection,
		"negation":  saysNegation,
		"no":        saysNo,
		"object":    saysObject,
		"particle":  saysParticle,
		"polite":    saysPolite,
		"question":  saysQuestion,
		"refusal":   saysRefusal,
		"regret":    saysRegret,
		"sarcasm":   saysSarcasm,
		"verb":      saysVerb,
		"yes":       saysYes,
	}
}

// phrases are all that the rules can read. Each section of things that are approved is a kind of its own.
func phrases() []phraseList {
	known := sections()
	var all []phraseList
	for line := range strings.Lines(phraseText) {
		line = strings.TrimSpace(line)
		name, section := strings.CutPrefix(line, "[")
		switch {
		case line == "" || line[0] == '#':
		case section:
			is, ok := known[strings.TrimSuffix(name, "]")]
			if !ok {
				panic("human: the phrases have an unknown section " + line)
			}
			all = append(all, phraseList{is: is})
		default:
			last := &all[len(all)-1]
			last.phrases = append(last.phrases, phraseFields(line)...)
		}
	}
	return all
}

// hanDeeds are the short verbs for what a group is about.
func hanDeeds(group []string) []string {
	switch group[0] {
	case "deploy":
		return []string{"上"}
	case "invoice":
		return []string{"付"}
	case "expense":
		return []string{"报"}
	case "purchase":
		return []string{"买"}
	case "contract":
		return []string{"签", "盖"}
	case "refund":
		return []string{"退"}
	case "access":
		return []string{"给", "开"}
	case "hire":
		return []string{"录"}
	case "email", "post":
		return []string{"发"}
	case "delete":
		return []string{"删"}
	}
	return nil
}

// oftenMisspelt are the words that are recognised in spite of a slip.
const oftenMisspelt = `approve approved agree agreed accept accepted confirm confirmed authorize authorized proceed ahead please reject rejected decline declined denied disagree`

const contractions = `
cant = can not | dont = do not | wont = will not | didnt = did not | isnt = is not | doesnt = does not | shouldnt = should not | wouldnt = would not | couldnt = could not | arent = are not | wasnt = was not | aint = is not | havent = have not | hasnt = has not | cannot = can not
im = i am | ive = i have | thats = that is | lets = let us | youre = you are
can't = can not | won't = will not | ain't = is not | let's = let us | i'm = i am | it's = it is | that's = that is | here's = here is | you're = you are | we're = we are | they're = they are | i've = i have | you've = you have | we've = we have | i'll = i will | we'll = we will | you'll = you will | it'll = it will | i'd = i would | we'd = we would | you'd = you would | he's = he is | she's = she is | what's = what is | who's = who is | there's = there is | y'all = you
`

// firstNames are names that stand alone below a reply or before it.
const firstNames = `james john robert michael mike william bill david dave richard rick joseph joe thomas tom charles charlie chris christopher daniel dan matthew matt anthony tony mark donald steven steve paul andrew andy joshua josh kenneth ken kevin brian george edward ed ronald ron timothy tim jason jeffrey jeff ryan jacob jake gary nicholas nick eric jonathan jon stephen larry justin scott brandon benjamin ben samuel sam gregory greg frank alexander alex raymond ray patrick pat jack dennis jerry tyler aaron jose adam nathan henry peter pete zach kyle walter ethan jeremy harold carl keith roger arthur terry lawrence sean sara sarah mary patricia jennifer jen linda elizabeth liz beth barbara susan sue jessica jess karen lisa nancy betty margaret maggie sandra ashley kimberly kim emily donna michelle carol amanda dorothy melissa deborah deb stephanie steph rebecca becca sharon laura cynthia kathleen kathy amy angela shirley anna brenda pamela pam emma nicole helen samantha katherine kate katie christine christina debra rachel carolyn janet catherine cathy maria heather diane ruth julie olivia joyce virginia victoria vicky kelly lauren martha judith cheryl megan andrea hannah jacqueline jackie gloria teresa ann anne jane alice bob rob jim jimmy tina fiona oliver lucas leo max simon martin marcus ivan omar ahmed ali mohammed raj priya anil sanjay amit neha ravi deepak sofia elena carlos luis juan pedro miguel diego pablo ana lucia marie pierre jean hans klaus stefan anders erik lars wei li wang zhang liu chen yang zhao huang zhou wu xu sun zhu ma hu guo lin luo zheng liang xie tang xiao ming jing fang lei jun qiang tao ting hui ling yan yun xin yu hao jie peng bo lily lucy grace vivian cindy wendy tracy jenny nina daisy ivy zoe chloe mia ella eva eve rose iris ian evan owen noah liam mason logan derek brad chad todd craig doug phil russ neil stan vic wayne howard bruce ralph roy eugene louis philip bobby johnny`

const hanSurnames = `王李张刘陈杨黄赵吴周徐孙马朱胡郭何林罗高郑梁谢宋唐许韩冯邓曹彭曾肖田董袁潘于蒋蔡余杜叶程苏魏吕丁任沈姚卢姜崔钟谭陆汪范金石廖贾夏韦付方白邹孟熊秦邱江尹薛闫段雷侯龙史陶黎贺顾毛郝龚邵万钱严覃武戴莫孔向汤温康施文牛樊葛邢安齐易乔伍庞颜倪庄聂章鲁岳翟殷詹申欧耿关兰焦俞左柳甘祝包宁尚符舒阮柯纪梅童凌毕单季裴霍涂成苗谷曲盛冉翁蓝路游辛靳阳司徒上官`

const hanGiven = `伟芳娜秀英敏静丽强磊军洋勇艳杰娟涛明超霞平刚桂华建国志文斌辉鹏飞玲红梅兰燕琴云莲珍雪荣爱妹香月莺媛瑞凡佳嘉琼勤贞莉璐雅琦晶妍茜秋珊莎锦黛青倩婷姣婉娴瑾颖露瑶怡婵雁蓓仪荷丹蓉眉君琳韵融园艺咏卿聪澜纯毓昭冰爽琬茗羽希宁欣飘育滢馥筠柔竹霭凝晓欢霄枫芸菲寒伊亚宜姬舒影荔枝思俊峰毅哲浩宇轩博睿晨阳旭东海波亮龙凯帆鑫宏健彬松林森楠桐梓涵晗诗琪雨彤子豪泽民德祥福春学义仁礼智信良友富贵安康永世广才武坚彪泰兴庆`

// lookalikes are letters of other alphabets that pass for Latin ones.
const lookalikes = `аa еe оo рp сc уy хx іi ѕs јj ԁd ɡg һh ԛq ԝw ѵv нh кk мm тt вb Аa Вb Еe Кk Мm Нh Оo Рp Сc Тt Хx Іi Ѕs Јj αa οo νv ρp υu ιi κk τt Αa Βb Εe Ηh Ιi Κk Μm Νn Οo Ρp Τt Υy Χx Ζz ηn ωw ɑa ⅼl ӏl ｏo ʟl ɴn ʀr ᴀa ᴘp ᴏo ᴠv ᴇe ᴅd`

// traditional are traditional characters and what the rules write instead.
const traditional = `這这 個个 請请 準准 許许 過过 沒没 問问 題题 見见 駁驳 絕绝 決决 無无 議议 辦办 執执 開开 發发 佈布 購购 報报 銷销 預预 費费 們们 說说 説说 會会 應应 該该 後后 來来 時时 嗎吗 還还 為为 爲为 對对 給给 錢钱 審审 覆复 復复 複复 閱阅 進进 繼继 續续 謝谢 經经 總总 長长 儘尽 盡尽 馬马 點点 認认 確确 項项 採采 單单 據据 實实 現现 將将 讓让 須须 幾几 與与 萬万 億亿 兩两 張张 陳陈 劉刘 趙赵 楊杨 黃黄 吳吴 鄭郑 孫孙 馮冯 蔣蒋 韓韩 鄧邓 葉叶 蘇苏 盧卢 羅罗 賴赖 鐘钟 鍾钟 譚谭 陸陆 遲迟 條条 動动 離离 職职 錄录 團团 隊队 運运 維维 測测 試试 線线 網网 資资 產产 額额 價价 貨货 轉转 帳账 賬账 匯汇 簽签 籤签 約约 協协 權权 戶户 數数 庫库 碼码 併并 並并 刪删 雖虽 卻却 祇只 衹只 則则 麼么 麽么 誰谁 從从 當当 換换 調调 變变 減减 補补 訴诉 聽听 覺觉 暫暂 緩缓 終终 棄弃 門门 別别 夢梦 規规 劃划 畫画 計计 設设 備备 務务 財财 導导 領领 員员 師师 電电 郵邮 寫写 讀读 親亲 愛爱 禮礼 順顺 頌颂 願愿 嘗尝 難难 擔担 慮虑 猶犹 絡络 結结 論论 贊赞 讚赞 內内 範范 圍围 標标 齊齐 誤误 關关 於于 業业 術术 東东 樣样 氣气 際际 歡欢 壓压 縮缩 優优 擇择 選选 層层 綠绿 燈灯 統统 幫帮 煩烦 勞劳 懇恳 趕赶 緊紧 搶抢 臺台 檯台 灣湾 蘭兰 偉伟 麗丽 強强 軍军 傑杰 濤涛 剛刚 華华 國国 輝辉 鵬鹏 飛飞 紅红 瓊琼 蓮莲 嚴严 廢废 銀银 帶带 種种 類类 級级 紀纪 檔档 頁页 簡简 體体 處处 護护 兒儿 裡里 裏里 邊边 麵面 衝冲 鬆松 雲云 佔占 僅仅 倆俩 傳传 債债 傷伤 傾倾 僱雇 儲储 兇凶 創创 勝胜 勢势 厲厉 參参 嘆叹 噹当 圓圆 塊块 夠够 夾夹 奪夺 奮奋 妝妆 學学 寶宝 尋寻 島岛 廠厂 廣广 彈弹 徑径 恆恒 悅悦 惡恶 態态 慶庆 憂忧 戲戏 擬拟 擴扩 攜携 敵敌 斷断 曆历 歷历 書书 棟栋 榮荣 構构 槍枪 樂乐 機机 檢检 歲岁 歸归 殘残 毀毁 況况 涼凉 淨净 漢汉 潛潜 熱热 營营 爭争 牽牵 狀状 獨独 獲获 環环 異异 療疗 盜盗 監监 盤盘 眾众 矯矫 礙碍 稅税 穩稳 窮穷 競竞 筆笔 節节 築筑 籌筹 糧粮 細细 組组 緣缘 縣县 績绩 織织 罰罚 義义 習习 聯联 聲声 肅肃 膽胆 臨临 舉举 舊旧 藝艺 藥药 號号 衛卫 裝装 訂订 記记 訊讯 訓训 評评 詢询 話话 誠诚 語语 課课 談谈 謀谋 證证 譯译 豐丰 貝贝 負负 貢贡 貧贫 責责 貴贵 買买 賣卖 賞赏 質质 趨趋 跡迹 車车 軟软 較较 載载 輕轻 輸输 辭辞 農农 連连 週周 達达 違违 遠远 適适 遺遗 醫医 釋释 針针 鋪铺 錯错 鍵键 鏈链 鐵铁 閉闭 間间 陽阳 陰阴 隨随 險险 雙双 雜杂 靈灵 韻韵 響响 頂顶 顧顾 頻频 顏颜 風风 飯饭 飲饮 館馆 駐驻 驗验 驚惊 髮发 鬥斗 魚鱼 鳥鸟 麥麦 齡龄`

const shortcodes = `
:+1: = 👍 | :thumbsup: = 👍 | :white_check_mark: = ✅ | :heavy_check_mark: = ✔ | :ballot_box_with_check: = ☑ | :ok_hand: = 👌 | :ok: = 🆗 | :-1: = 👎 | :thumbsdown: = 👎 | :x: = ❌ | :no_entry: = ⛔ | :no_good: = 🙅
:+1::skin-tone-2: = 👍 | :+1::skin-tone-3: = 👍 | :+1::skin-tone-4: = 👍 | :+1::skin-tone-5: = 👍 | :+1::skin-tone-6: = 👍 | :-1::skin-tone-2: = 👎 | :-1::skin-tone-3: = 👎 | :-1::skin-tone-4: = 👎 | :-1::skin-tone-5: = 👎 | :-1::skin-tone-6: = 👎
:tada: = 🎉 | :rocket: = 🚀 | :pray: = 🙏 | :heart: = ❤ | :smile: = 😄 | :slightly_smiling_face: = 🙂 | :thinking_face: = 🤔 | :face_with_rolling_eyes: = 🙄 | :joy: = 😂 | :upside_down_face: = 🙃 | :eyes: = 👀 | :clap: = 👏 | :muscle: = 💪 | :100: = 💯
[ok] = 👌 | [强] = 👍 | [赞] = 👍 | [thumbsup] = 👍 | [弱] = 👎 | [差劲] = 👎 | [thumbsdown] = 👎 | [no] = 🙅 | [微笑] = 🙂 | [偷笑] = 😏 | [捂脸] = 🤦 | [笑哭] = 😂 | [撇嘴] = 😒 | [白眼] = 🙄 | [鄙视] = 🙄 | [呲牙] = 😁 | [玫瑰] = 🌹 | [抱拳] = 🙏 | [握手] = 🤝 | [鼓掌] = 👏 | [愉快] = 😊 | [憨笑] = 😄 | [胜利] = 💪
`
