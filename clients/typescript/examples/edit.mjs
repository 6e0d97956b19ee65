// Edits a video or an image: node edit.mjs INPUT OUTPUT MODEL PROMPT
import { Cutroom } from "cutroom";
import { edit } from "cutroom/node";

const [input, output, model, prompt] = process.argv.slice(2);
const job = await edit(new Cutroom(), model, input, output, { prompt }, (job) => {
  console.log(`${job.status} ${Math.round(job.progress * 100)}%`);
});
console.log(`${output} by ${job.model}, seed ${job.seed}`);
