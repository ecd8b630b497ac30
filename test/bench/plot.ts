import { writeFile } from 'node:fs/promises'
import { BarChart, type BarSeriesOption } from 'echarts/charts'
import { GridComponent, MarkLineComponent, TitleComponent } from 'echarts/components'
import { init, use } from 'echarts/core'
import { SVGRenderer } from 'echarts/renderers'
import { type Measure, writeSize, writeTarget } from './report.ts'

use([BarChart, GridComponent, MarkLineComponent, TitleComponent, SVGRenderer])

/** One plot for each measure that has a target: what was reached by what was stored, and the target as a line. */
export async function drawPlots(measures: readonly Measure[], folder: string): Promise<void> {
  const names = [...new Set(measures.filter(({ target }) => target).map(({ name }) => name))]
  for (const name of names) {
    const file = name.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-')
    const svg = drawPlot(measures.filter((one) => one.name === name))
    await writeFile(`${folder}/${file.slice(0, 80)}.svg`, svg)
  }
}

function drawPlot(measures: readonly Measure[]): string {
  const [first] = measures
  const limit = first?.target && Object.values(first.target)[0]
  const chart = init(null, null, { renderer: 'svg', ssr: true, width: 560, height: 320 })
  const series: BarSeriesOption = {
    type: 'bar',
    barMaxWidth: 60,
    data: measures.map(({ result }) => Number(result.toFixed(3))),
    label: { show: true, position: 'top' },
    markLine: {
      symbol: 'none',
      data: limit === undefined ? [] : [{ yAxis: limit }],
      label: { formatter: first ? writeTarget(first) : '' },
    },
  }
  chart.setOption({
    animation: false,
    title: { text: first?.name, left: 'center', textStyle: { fontSize: 13 } },
    xAxis: { type: 'category', data: measures.map(({ size }) => writeSize(size)) },
    yAxis: { type: 'value', max: ({ max }: { max: number }) => Math.max(max, limit ?? 0) * 1.15 },
    series: [series],
  })
  const svg = chart.renderToSVGString()
  chart.dispose()
  return svg
}
