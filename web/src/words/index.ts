import i18next, { type BackendModule } from "i18next"
import { initReactI18next } from "react-i18next"

export const languages = ["en", "zh"] as const
export type Language = (typeof languages)[number]

const files = import.meta.glob<{ default: Record<string, unknown> }>("./{en,zh}/*.json")

// Each area of the UI has its words in words/<language>/<area>.json, loaded with the area.
const loader: BackendModule = {
  type: "backend",
  init() {},
  read(lng, namespace, done) {
    const load = files[`./${lng}/${namespace}.json`]
    if (!load) return done(new Error(`there are no words for ${namespace} in ${lng}`), null)
    load().then(
      (module) => done(null, module.default),
      (error: unknown) => done(error instanceof Error ? error : new Error(String(error)), null),
    )
  },
}

const stored = "tandem.language"

function wanted(): Language {
  const chosen = localStorage.getItem(stored)
  if (chosen === "en" || chosen === "zh") return chosen
  return navigator.languages.some((l) => l.toLowerCase().startsWith("zh")) && !navigator.languages[0]?.toLowerCase().startsWith("en") ? "zh" : "en"
}

/** language is the one in which the UI speaks now. */
export function language(): Language {
  return i18next.language === "zh" ? "zh" : "en"
}

/** speak changes the language and remembers it in this browser. */
export async function speak(next: Language) {
  localStorage.setItem(stored, next)
  await i18next.changeLanguage(next)
}

export async function prepareWords() {
  i18next.on("languageChanged", (lng) => {
    document.documentElement.lang = lng === "zh" ? "zh-CN" : "en"
  })
  await i18next
    .use(loader)
    .use(initReactI18next)
    .init({ lng: wanted(), fallbackLng: false, supportedLngs: languages, ns: ["shell"], defaultNS: "shell", interpolation: { escapeValue: false }, returnNull: false })
}
