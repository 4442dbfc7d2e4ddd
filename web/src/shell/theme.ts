import { createTheme } from "@mantine/core"

const system = 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "PingFang SC", "Microsoft YaHei", "Noto Sans CJK SC", sans-serif'

/** theme: one accent colour, system fonts with a Chinese fallback, the density of a tool. */
export const theme = createTheme({
  primaryColor: "indigo",
  primaryShade: { light: 7, dark: 7 },
  fontFamily: system,
  fontFamilyMonospace: 'ui-monospace, SFMono-Regular, Menlo, Consolas, "Noto Sans Mono CJK SC", monospace',
  headings: { fontFamily: system, fontWeight: "600" },
  defaultRadius: "sm",
  fontSizes: { xs: "0.75rem", sm: "0.8125rem", md: "0.875rem", lg: "1rem", xl: "1.125rem" },
  autoContrast: true,
  respectReducedMotion: true,
  // The page itself never scrolls, and the style by which dialogs would hold it has no nonce.
  components: { Modal: { defaultProps: { lockScroll: false } }, Drawer: { defaultProps: { lockScroll: false } } },
})
