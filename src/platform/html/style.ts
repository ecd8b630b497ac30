/** The style of all pages: cards, light or dark as the system prefers, readable on a phone. */
export const BASE_STYLE = `
:root {
  color-scheme: light dark;
  --ink: light-dark(#1c2430, #e6e9ee);
  --soft: light-dark(#566070, #a3adbb);
  --line: light-dark(#d9dee6, #333c49);
  --edge: light-dark(#7b8595, #76818f);
  --ground: light-dark(#f6f7f9, #12161c);
  --card: light-dark(#ffffff, #1a2029);
  --good: light-dark(#0a6b3d, #62d394);
  --bad: light-dark(#a8231b, #ff8f85);
  --warn: light-dark(#7a4b00, #f0b860);
  --accent: light-dark(#1f4fd8, #8fb0ff);
}
* { box-sizing: border-box; }
html { scroll-padding-top: 1rem; }
body { margin: 0; background: var(--ground); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; overflow-wrap: break-word; }
main { max-width: 68rem; margin: 0 auto; padding: 1.5rem 1rem 4rem; }
h1 { margin: 0; font-size: 1.6rem; line-height: 1.25; overflow-wrap: anywhere; }
h2 { margin: 0 0 .6rem; font-size: 1.1rem; }
h3 { margin: 1rem 0 .3rem; font-size: 1rem; }
h2 small, .soft { color: var(--soft); font-weight: normal; }
p { margin: .3rem 0; max-width: 46rem; }
section { margin-top: 1.2rem; padding: 1rem; border: 1px solid var(--line); border-radius: .5rem; background: var(--card); }
table { width: 100%; border-collapse: collapse; font-size: .875rem; }
th, td { padding: .4rem .8rem .4rem 0; border-top: 1px solid var(--line); text-align: left; vertical-align: top; overflow-wrap: anywhere; }
th { border-top: 0; overflow-wrap: normal; color: var(--soft); font-weight: 600; }
caption { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
code, pre { font-family: ui-monospace, monospace; font-size: .875em; overflow-wrap: anywhere; }
.id, p > code, dd > code { display: inline-block; max-width: 100%; overflow-wrap: anywhere; }
pre { margin: .3rem 0 0; white-space: pre-wrap; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .3rem 1rem; margin: 0; }
dt { color: var(--soft); }
dd { margin: 0; overflow-wrap: anywhere; }
nav a[aria-current=page] { color: var(--ink); font-weight: 600; border-bottom: 2px solid currentColor; text-decoration: none; }
main > nav { margin-top: .4rem; font-size: .875rem; color: var(--soft); }
a { color: var(--accent); }
form { display: flex; flex-wrap: wrap; gap: .8rem; align-items: end; }
form.stacked { flex-direction: column; align-items: stretch; max-width: 34rem; }
form.stacked > button { align-self: start; }
td form { display: inline-flex; gap: .3rem; margin-right: .3rem; }
label, .field { display: grid; grid-template-columns: minmax(0, auto); max-width: 100%; gap: .2rem; font-size: .875rem; color: var(--soft); }
fieldset { margin: 0; padding: .6rem .8rem; border: 1px solid var(--line); border-radius: .35rem; }
label.choice { display: flex; gap: .5rem; align-items: center; color: var(--ink); min-height: 1.75rem; }
input, select, textarea, button, .button { padding: .45rem .6rem; border: 1px solid var(--edge); border-radius: .35rem; background: var(--ground); color: var(--ink); font: inherit; max-width: 100%; }
input[type=radio], input[type=checkbox] { width: 1.25rem; height: 1.25rem; accent-color: var(--accent); }
button, .button { display: inline-block; border-color: var(--accent); background: var(--accent); color: var(--card); cursor: pointer; text-decoration: none; }
button.quiet, .button.quiet { background: transparent; color: var(--accent); }
button.danger { border-color: var(--bad); background: var(--bad); }
input:focus-within, :focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
[aria-invalid=true] { border-color: var(--bad); border-width: 2px; }
.problem { color: var(--bad); font-weight: 600; }
.hint { color: var(--soft); font-size: .875rem; }
.good { color: var(--good); }
.bad { color: var(--bad); }
.warn { color: var(--warn); }
.badge { display: inline-block; padding: 0 .5rem; border: 1px solid currentColor; border-radius: 1rem; font-size: .8125rem; white-space: nowrap; }
.notice { margin: 0 0 .8rem; padding-left: .8rem; border-left: .25rem solid currentColor; }
.row { display: flex; flex-wrap: wrap; gap: .5rem .8rem; align-items: center; }
.hidden { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
.skip { position: absolute; left: -999rem; }
.skip:focus { left: 1rem; top: .5rem; padding: .5rem; background: var(--card); z-index: 1; }
/* Where there is room an id stays whole, unless it is a very long one. */
@media (min-width: 64rem) {
  td :is(a, code) { display: inline-block; max-width: min(14rem, 16vw); overflow-wrap: break-word; }
  td :is(button, .button) { white-space: nowrap; }
}
@media (max-width: 40rem) {
  dl { grid-template-columns: 1fr; }
  dd { margin-bottom: .5rem; }
  .id { font-size: .875em; }
  table.cells, .cells tbody, .cells tr, .cells td { display: block; }
  .cells thead { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
  .cells tr { padding: .5rem 0; border-top: 1px solid var(--line); }
  .cells td { display: grid; grid-template-columns: 8rem 1fr; gap: .5rem; padding: .15rem 0; border: 0; text-align: left; white-space: normal; }
  .cells td[data-label]::before { content: attr(data-label); color: var(--soft); }
  .cells td:not([data-label]) { display: block; }
  .cells .wide { display: none; }
  main form[method=get] :is(label, .field) { flex: 1 1 40%; }
  main form[method=get] :is(input, select) { width: 100%; min-width: 0; }
  .cells.compact tr { display: flex; flex-wrap: wrap; gap: .1rem .6rem; padding: .25rem 0; align-items: baseline; }
  .cells.compact td:not(.wide) { display: block; padding: .1rem 0; }
  .cells.compact td::before { content: none; }
}
@media (prefers-reduced-motion: no-preference) { html { scroll-behavior: smooth; } }
`
