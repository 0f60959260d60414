"""How the page looks, by day and by night, on a desk and on a phone."""

STYLE = """
:root { --ink: #1d2430; --faint: #5b6675; --paper: #f6f7f9; --card: #ffffff; --line: #d9dee5; --accent: #0072b2;
  --go: #00795a; --stop: #b34700; --unsure: #8a6100; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8ebf0; --faint: #a4afbd; --paper: #14181e; --card: #1e242c;
  --line: #37404c; --accent: #6fc0ee; --go: #4fd1a5; --stop: #ff9a5c; --unsure: #f0c04f; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.5 system-ui, sans-serif;
  overflow-wrap: anywhere; }
main { max-width: 72rem; margin: 0 auto; padding: 1.25rem 1rem 3rem; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 .3rem; }
h2 { font-size: 1.15rem; margin: 2rem 0 .6rem; }
h3 { font-size: 1rem; margin: 0 0 .5rem; }
p { margin: .3rem 0; }
.faint { color: var(--faint); }
.advice { border-left: .4rem solid var(--accent); background: var(--card); border-radius: .4rem; padding: .8rem 1rem;
  margin: 1.2rem 0; }
.advice p:first-child { font-size: 1.15rem; font-weight: 600; }
.go { border-color: var(--go); } .stop { border-color: var(--stop); } .unsure { border-color: var(--unsure); }
.counts { display: grid; grid-template-columns: repeat(auto-fit, minmax(7rem, 1fr)); gap: .6rem; margin: 0; }
.counts div { background: var(--card); border: 1px solid var(--line); border-radius: .4rem; padding: .5rem .75rem; }
.counts dt { color: var(--faint); font-size: .85rem; }
.counts dd { margin: 0; font-size: 1.25rem; font-weight: 600; }
.pictures { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr)); gap: 1rem; }
figure { margin: 0; background: var(--card); border: 1px solid var(--line); border-radius: .4rem; padding: .9rem; }
figure img { display: block; width: 100%; height: auto; background: #ffffff; border-radius: .3rem; }
figcaption { color: var(--faint); font-size: .9rem; margin-top: .5rem; }
.scroll { overflow-x: auto; overflow-wrap: normal; }
.scroll { background: var(--card); border: 1px solid var(--line); border-radius: .4rem; }
table { border-collapse: collapse; width: 100%; font-size: .92rem; }
th, td { text-align: left; vertical-align: top; padding: .4rem .75rem; border-bottom: 1px solid var(--line); }
td { min-width: 4rem; } td:last-child { min-width: 9rem; }
tbody tr:last-child td { border-bottom: 0; }
th { font-weight: 600; color: var(--faint); white-space: nowrap; }
ul { margin: .3rem 0; padding-left: 1.2rem; }
details { margin: .6rem 0; } summary { cursor: pointer; color: var(--accent); }
@media print { body { background: #ffffff; } figure, tr { break-inside: avoid; } }
"""
