import { BASE_STYLE } from '../platform/html/style.ts'

/** The style of the console: that of every page, and its frame. */
export const CONSOLE_STYLE = `${BASE_STYLE}
.bar { background: var(--card); border-bottom: 1px solid var(--line); }
.bar > div { display: flex; flex-wrap: wrap; gap: .3rem 1rem; align-items: center; max-width: 68rem; margin: 0 auto; padding: .6rem 1rem; }
.bar nav { flex: 1 1 auto; }
.bar ul { display: flex; flex-wrap: wrap; gap: .2rem 1rem; margin: 0; padding: 0; list-style: none; }
.bar nav a { display: inline-block; padding: .15rem 0; min-height: 1.75rem; text-decoration: none; }
.bar nav a[aria-current=page] { color: var(--ink); font-weight: 600; border-bottom: 2px solid currentColor; }
.timeline { margin: 0; padding: 0; list-style: none; }
.timeline > li { padding: .5rem 0; border-top: 1px solid var(--line); }
.timeline > li:first-child { border-top: 0; }
`
