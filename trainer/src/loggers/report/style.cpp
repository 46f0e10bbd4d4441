#include "page.h"

namespace levin::report {

const char* const kStyle = R"css(
:root{--bg:#f5f6f8;--card:#fff;--text:#171b22;--muted:#5a6473;--faint:#8b95a4;--line:#e2e6ec;--soft:#eef1f5;
--accent:#2f5bea;--good:#0b7a53;--good-bg:#dff5ea;--warn:#8a5300;--warn-bg:#fdf0d7;--bad:#b3261e;--bad-bg:#fce4e1;
--heat:47,91,234;
--c0:#2f5bea;--c1:#d9730d;--c2:#0c8f67;--c3:#c2317b;--c4:#7a48d8;--c5:#0a8aa6;--c6:#a15c00;--c7:#5f6b7a;
--shadow:0 1px 2px rgba(20,27,40,.05),0 4px 16px rgba(20,27,40,.05);
--mono:ui-monospace,"SF Mono",SFMono-Regular,Menlo,"DejaVu Sans Mono",Consolas,monospace;
--sans:Inter,system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue","DejaVu Sans",Arial,sans-serif}
@media (prefers-color-scheme:dark){:root{--bg:#0d1117;--card:#151b23;--text:#e8ecf2;--muted:#9aa6b6;--faint:#6d7988;
--line:#28313d;--soft:#1c2430;--accent:#7d9bff;--good:#57d3a0;--good-bg:#12352a;--warn:#f0b65c;--warn-bg:#3a2b11;
--bad:#ff8d84;--bad-bg:#43191a;--heat:106,140,255;--c0:#7d9bff;--c1:#f39b4b;--c2:#45cf9d;--c3:#f27ab4;--c4:#b294ff;
--c5:#4fc6de;--c6:#d9a45b;--c7:#a3afbe;--shadow:0 1px 2px rgba(0,0,0,.4)}}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%;scroll-padding-top:60px}
body{margin:0;background:var(--bg);color:var(--text);font:15px/1.5 var(--sans);font-variant-numeric:tabular-nums}
[hidden]{display:none!important}
.wrap{max-width:1240px;margin:0 auto;padding:0 24px}
.skip{position:absolute;left:-999px}
.skip:focus{left:16px;top:12px;background:var(--card);padding:8px 12px;border-radius:8px;z-index:9}
:focus-visible{outline:2px solid var(--accent);outline-offset:2px}
.top{padding:36px 0 20px}
.eyebrow{margin:0;color:var(--accent);font-size:12px;font-weight:650;letter-spacing:.09em;text-transform:uppercase}
.headline{display:flex;flex-wrap:wrap;align-items:center;gap:8px 14px;margin:6px 0 4px}
h1{margin:0;font-size:clamp(24px,3.2vw,34px);line-height:1.15;letter-spacing:-.022em;font-weight:680;min-width:0;
overflow-wrap:anywhere}
.facts{margin:0;color:var(--muted)}
.facts b{color:var(--text);font-weight:600}
.facts span+span::before{content:"\00b7";margin:0 .55em;color:var(--faint)}
.pill{display:inline-flex;align-items:center;gap:7px;padding:3px 11px;border-radius:99px;font-size:13px;font-weight:600;
background:var(--soft);color:var(--muted)}
.pill::before{content:"";width:8px;height:8px;border-radius:50%;background:currentColor}
.pill.running{background:var(--warn-bg);color:var(--warn)}
.pill.success{background:var(--good-bg);color:var(--good)}
.pill.failed,.pill.interrupted{background:var(--bad-bg);color:var(--bad)}
@media (prefers-reduced-motion:no-preference){.pill.running::before{animation:pulse 1.6s ease-in-out infinite}}
@keyframes pulse{50%{opacity:.25}}
.bar{position:sticky;top:0;z-index:5;background:color-mix(in srgb,var(--bg) 88%,transparent);backdrop-filter:blur(8px);
border-bottom:1px solid var(--line)}
.bar .wrap{display:flex;gap:22px;overflow-x:auto;scrollbar-width:none}
.bar a{color:var(--muted);text-decoration:none;font-size:14px;font-weight:550;padding:11px 0;white-space:nowrap}
.bar a:hover{color:var(--text)}
section{margin:30px 0 0}
h2{font-size:19px;letter-spacing:-.012em;font-weight:650;margin:0 0 12px}
h2.quiet{font-size:12px;font-weight:650;letter-spacing:.07em;text-transform:uppercase;color:var(--faint);
margin-bottom:10px}
.card{background:var(--card);border:1px solid var(--line);border-radius:14px;box-shadow:var(--shadow)}
.scroll{overflow-x:auto}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,136px),1fr));gap:12px}
.tile{padding:14px 16px 12px;min-width:0}
.tile .name{color:var(--muted);font-size:13px;font-weight:550;white-space:nowrap;overflow:hidden;text-overflow:ellipsis}
.tile .value{font-size:26px;line-height:1.25;font-weight:660;letter-spacing:-.02em}
.tile .best{color:var(--faint);font-size:12.5px;white-space:nowrap;overflow:hidden;text-overflow:ellipsis}
.section-head{display:flex;flex-wrap:wrap;align-items:center;
justify-content:space-between;gap:6px 20px;margin-bottom:8px}
.section-head h2{margin:0}
.tools{display:flex;flex-wrap:wrap;align-items:center;gap:8px 18px}
.tool{display:flex;align-items:center;gap:9px;color:var(--muted);font-size:13px}
.tool output{min-width:2.4em;color:var(--text)}
input[type=range]{accent-color:var(--accent);width:128px;max-width:100%;margin:0}
.segments{display:inline-flex;background:var(--soft);border-radius:9px;padding:3px}
button{font:inherit;color:inherit;background:none;border:0;cursor:pointer}
.segments button{padding:3px 12px;border-radius:7px;font-size:13px;font-weight:550;color:var(--muted)}
.segments button[aria-pressed=true]{background:var(--card);color:var(--text);box-shadow:0 1px 2px rgba(0,0,0,.14)}
.hint{margin:0 0 12px;color:var(--faint);font-size:13px}
.charts{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,480px),1fr));gap:16px}
.chart{padding:14px 16px 12px;min-width:0;position:relative}
.chart-head{display:flex;align-items:baseline;gap:10px;min-height:28px}
.chart-head h3{margin:0;font-size:15px;font-weight:640;letter-spacing:-.005em;flex:1;min-width:0;overflow-wrap:anywhere}
.small{font-size:12.5px;font-weight:550;color:var(--muted);padding:2px 9px;border-radius:7px}
.small:hover{background:var(--soft);color:var(--text)}
.small[aria-pressed=true]{background:var(--soft);color:var(--accent)}
.chart svg{display:block;width:100%;height:236px;touch-action:pan-y;user-select:none;border-radius:6px}
.chart text{font:11.5px var(--sans);fill:var(--faint)}
.grid{stroke:var(--line);stroke-width:1}
.axis{stroke:var(--faint);stroke-opacity:.55}
.line{fill:none;stroke-width:2;stroke-linejoin:round;stroke-linecap:round}
.line.raw{stroke-width:1.25;stroke-opacity:.28}
.cursor{stroke:var(--muted);stroke-dasharray:3 3}
.mark{stroke:var(--c1);stroke-dasharray:5 4}
.brush{fill:var(--accent);fill-opacity:.13}
.legend{display:flex;flex-wrap:wrap;gap:2px 6px;margin:6px 0 0;padding:0}
.legend button{display:inline-flex;align-items:center;gap:7px;font-size:13px;padding:2px 8px 2px 6px;border-radius:7px}
.legend button:hover{background:var(--soft)}
.legend i{width:14px;height:3px;border-radius:2px;flex:none}
.legend b{font-weight:600}
.legend button[aria-pressed=false]{opacity:.42;text-decoration:line-through}
.tip{position:absolute;pointer-events:none;background:var(--card);border:1px solid var(--line);border-radius:9px;
box-shadow:0 6px 24px rgba(10,16,28,.18);padding:7px 10px;font-size:12.5px;z-index:4;min-width:130px;max-width:230px}
.tip p{margin:0 0 3px;color:var(--muted)}
.tip div{display:flex;align-items:center;gap:7px}
.tip i{width:9px;height:9px;border-radius:3px;flex:none}
.tip span{overflow:hidden;text-overflow:ellipsis}
.tip b{margin-left:auto;font-weight:620;padding-left:12px}
.empty{padding:44px 20px;text-align:center;color:var(--muted);border-style:dashed;box-shadow:none}
.wide{grid-column:1/-1}
.empty strong{display:block;color:var(--text);font-size:16px;margin-bottom:2px}
.pictures{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,330px),1fr));gap:16px}
figure{margin:0;padding:14px 16px;min-width:0}
figure h3{margin:0 0 10px;font-size:15px;font-weight:640;overflow-wrap:anywhere}
figure img{display:block;width:100%;height:auto;image-rendering:pixelated;border-radius:8px;background:var(--soft)}
.stepper{max-width:460px;display:flex;align-items:center;gap:12px;margin-top:10px;color:var(--muted);font-size:13px}
.stepper input{flex:1;min-width:0;width:auto}
.matrix{padding:16px;margin-bottom:16px}
.matrix h3{margin:0 0 2px;font-size:15px;font-weight:640}
.matrix p{margin:0 0 12px;color:var(--muted);font-size:13px;min-height:20px}
.matrix table{border-collapse:separate;border-spacing:2px;table-layout:fixed;width:100%}
.matrix th{font-size:12px;font-weight:500;color:var(--muted);text-align:right;padding:0 8px 0 0;overflow:hidden;
text-overflow:ellipsis;white-space:nowrap}
.matrix thead th{padding:0 0 5px;text-align:center;vertical-align:bottom;height:78px;overflow:visible}
.matrix thead th span{display:inline-block;writing-mode:vertical-rl;transform:rotate(180deg);max-height:78px;
overflow:hidden;text-overflow:ellipsis}
.matrix th.corner{width:92px}
.matrix td{text-align:center;font-size:12px;padding:0;height:34px;border-radius:5px;overflow:hidden}
.sides{display:flex;flex-wrap:wrap;gap:18px 44px}
.sides .scroll{flex:1 1 560px;min-width:0;max-width:720px;padding:2px}
.mixed{flex:1 1 250px;min-width:0;max-width:460px}
.mixed h4{margin:4px 0 8px;font-size:12px;font-weight:650;letter-spacing:.07em;text-transform:uppercase;
color:var(--faint)}
.mixed ol{list-style:none;margin:0;padding:0}
.mixed li{display:grid;grid-template-columns:1fr auto;gap:1px 12px;padding:8px 0;border-top:1px solid var(--line);
font-size:14px;color:var(--muted)}
.mixed b{color:var(--text);font-weight:600}
.mixed em{font-style:normal}
.mixed i{grid-row:2;grid-column:1/-1;height:4px;border-radius:2px;width:var(--share);background:var(--c1);opacity:.75}
.matrix td:focus-visible,.matrix td:hover{outline:2px solid var(--accent);outline-offset:0}
table.rows{width:100%;border-collapse:collapse;font-size:14px}
.rows th{font-size:12px;font-weight:600;color:var(--faint);text-align:left;padding:11px 18px 9px;white-space:nowrap}
.rows td{padding:8px 18px;border-top:1px solid var(--line);white-space:nowrap}
.rows .num{text-align:right}
.rows code{font:13px var(--mono)}
.rows .share{width:28%;min-width:70px}
.rows .share i{display:block;height:6px;border-radius:3px;background:var(--c0);min-width:2px;opacity:.85}
.rows tfoot td{font-weight:620;border-top:2px solid var(--line)}
.pairs{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,330px),1fr));margin:0;padding:6px 18px;
column-gap:36px}
.pairs div{display:flex;justify-content:space-between;gap:18px;padding:7px 0;
border-bottom:1px solid var(--line);min-width:0}
.pairs dt{color:var(--muted);font-size:14px;flex:none;max-width:55%;overflow-wrap:anywhere}
.pairs dd{margin:0;font:13px/1.6 var(--mono);text-align:right;min-width:0;overflow-wrap:anywhere}
.note{padding:14px 16px;margin-bottom:12px}
.note h3{margin:0 0 6px;font-size:14px;font-weight:640}
.note pre{margin:0;font:13px/1.5 var(--mono);white-space:pre-wrap;overflow-wrap:anywhere}
footer{padding:34px 24px 44px;color:var(--faint);font-size:13px}
@media (max-width:640px){.wrap{padding:0 14px}.top{padding:24px 0 14px}.tiles{grid-template-columns:1fr 1fr;gap:10px}
.tile{padding:11px 13px}.tile .value{font-size:22px}.chart{padding:12px 12px 10px}.chart svg{height:206px}
.matrix{padding:12px 10px}.matrix table{border-spacing:1px}.matrix td{height:26px;font-size:10px;border-radius:3px}
.matrix th{font-size:10.5px;padding-right:5px}.matrix th.corner{width:62px}
.sides .scroll,.mixed{flex-basis:100%}.share{display:none}
.rows th,.rows td{padding-left:13px;padding-right:13px}
.pairs{padding:4px 14px}footer{padding:26px 14px 34px}.tools{width:100%;justify-content:space-between}
.hint{display:none}
.facts span{display:inline-block;margin-right:16px}.facts span+span::before{content:none}.tool input{width:96px}
.tile .best{font-size:12px}}
@media print{.bar,.tools,.hint{display:none}.card{box-shadow:none;break-inside:avoid}}
)css";

}  // namespace levin::report
