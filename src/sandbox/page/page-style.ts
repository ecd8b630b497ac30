/** The start page's style: readable on a phone, light or dark according to the system setting. */
export const PAGE_STYLE = `
:root {
  color-scheme: light dark;
  --ink: light-dark(#1c2430, #e6e9ee);
  --soft: light-dark(#5c6675, #9aa5b4);
  --line: light-dark(#d9dee6, #333c49);
  --ground: light-dark(#f6f7f9, #12161c);
  --card: light-dark(#ffffff, #1a2029);
  --good: light-dark(#0a6b3d, #62d394);
  --bad: light-dark(#a8231b, #ff8f85);
  --accent: light-dark(#1f4fd8, #8fb0ff);
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 68rem; margin: 0 auto; padding: 1.5rem 1rem 4rem; }
h1 { margin: 0; font-size: 1.6rem; }
h2 { margin: 0 0 .6rem; font-size: 1.1rem; }
h2 small, .soft { color: var(--soft); font-weight: normal; }
section { margin-top: 1.2rem; padding: 1rem; border: 1px solid var(--line); border-radius: .5rem; background: var(--card); overflow-x: auto; }
table { width: 100%; border-collapse: collapse; font-size: .875rem; }
th, td { padding: .3rem .8rem .3rem 0; border-top: 1px solid var(--line); text-align: left; white-space: nowrap; }
th { border-top: 0; color: var(--soft); font-weight: 600; }
.number { text-align: right; font-variant-numeric: tabular-nums; }
code, pre { font-family: ui-monospace, monospace; font-size: .875em; }
pre { margin: .3rem 0 0; white-space: pre-wrap; overflow-wrap: anywhere; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .3rem 1rem; margin: 0; }
dt { color: var(--soft); }
dd { margin: 0; overflow-wrap: anywhere; }
nav { margin-top: .4rem; font-size: .875rem; color: var(--soft); }
a { color: var(--accent); }
td form { display: inline-flex; gap: .3rem; margin-right: .3rem; }
td input, td button { padding: .1rem .4rem; }
form { display: flex; flex-wrap: wrap; gap: .8rem; align-items: end; }
label { display: grid; gap: .2rem; font-size: .875rem; color: var(--soft); }
input, select, button { padding: .45rem .6rem; border: 1px solid var(--line); border-radius: .35rem; background: var(--ground); color: var(--ink); font: inherit; }
button { border-color: var(--accent); background: var(--accent); color: var(--card); cursor: pointer; }
.good { color: var(--good); }
.bad { color: var(--bad); }
.notice { margin: 0 0 .8rem; padding-left: .8rem; border-left: .25rem solid currentColor; }
@media (max-width: 40rem) { dl { grid-template-columns: 1fr; } dd { margin-bottom: .5rem; } }
`
