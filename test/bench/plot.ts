import { mkdir, writeFile } from 'node:fs/promises'
import { BarChart } from 'echarts/charts'
import { GridComponent, MarkLineComponent, TitleComponent } from 'echarts/components'
import { type EChartsCoreOption, init, use } from 'echarts/core'
import { SVGRenderer } from 'echarts/renderers'
import { isMet, type Measure, writeSize, writeTarget } from './report.ts'

use([BarChart, GridComponent, MarkLineComponent, TitleComponent, SVGRenderer])

const MET = '#2a8f5b'
const MISSED = '#c8553d'
/** Bars are cut off here, as times of their target. */
const LONGEST = 3

/** Draws every measure that has a target, one bar for each size, as a share of its target. */
export async function drawPlot(measures: readonly Measure[], folder: string): Promise<void> {
  const withTarget = measures.filter(({ target }) => target)
  const names = [...new Set(withTarget.map(({ name }) => name))]
  const drawn = names.flatMap((name) => withTarget.filter((one) => one.name === name)).reverse()
  if (drawn.length === 0) return
  const svg = render(makeOptions(drawn), 1000, 100 + drawn.length * 22)
  await mkdir(folder, { recursive: true })
  await writeFile(`${folder}/bench.svg`, svg)
}

function makeOptions(drawn: readonly Measure[]): EChartsCoreOption {
  const labels = drawn.map(({ name, size }) => {
    const isOneOfSeveral = drawn.filter((one) => one.name === name).length > 1
    return isOneOfSeveral ? `${name} · ${writeSize(size)}` : name
  })
  return {
    animation: false,
    title: {
      text: 'What was reached, as a share of its target',
      left: 20,
      textStyle: { fontSize: 15 },
    },
    grid: { left: 580, right: 110, top: 50, bottom: 30 },
    xAxis: { type: 'value', min: 0, max: LONGEST },
    yAxis: {
      type: 'category',
      data: labels,
      axisTick: { show: false },
      axisLabel: { width: 560, overflow: 'truncate', fontSize: 11 },
    },
    series: [
      {
        type: 'bar',
        barWidth: 13,
        data: drawn.map((one) => ({
          value: Number(Math.min(LONGEST, computeShare(one)).toFixed(3)),
          itemStyle: { color: isMet(one) ? MET : MISSED },
          label: { formatter: `${one.result.toFixed(2)} (${writeTarget(one)})` },
        })),
        label: { show: true, position: 'right', fontSize: 11, backgroundColor: '#fff', padding: 1 },
        markLine: { symbol: 'none', label: { formatter: 'target' }, data: [{ xAxis: 1 }] },
      },
    ],
  }
}

/** From 1 on the target is reached, whether it is a least or a greatest value. */
function computeShare({ result, target }: Measure): number {
  if (!target) return 0
  if ('atLeast' in target) return result / target.atLeast
  return result <= target.atMost && result === 0 ? 1 : target.atMost / result
}

function render(options: EChartsCoreOption, width: number, height: number): string {
  const chart = init(null, null, { renderer: 'svg', ssr: true, width, height })
  chart.setOption(options)
  const svg = chart.renderToSVGString()
  chart.dispose()
  return svg
}
