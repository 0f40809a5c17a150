// Writes what pprof's files hold as JSON beside them, by a reader that isn't ours: usage: node pprof.mjs MODULE FILE...
import { readFileSync, writeFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";

const { Profile } = await import(process.argv[2]);
for (const file of process.argv.slice(3)) {
    const profile = Profile.decode(gunzipSync(readFileSync(file)));
    const text = (at) => profile.stringTable.strings[Number(at)];
    const by = (list) => new Map(list.map((one) => [Number(one.id), one]));
    const [functions, locations] = [by(profile.function), by(profile.location)];
    const name = (id) => text(functions.get(Number(locations.get(Number(id)).line[0].functionId)).name);
    const line = (id) => Number(locations.get(Number(id)).line[0].line);
    const metrics = profile.sampleType.map((type) => text(type.type));
    const samples = profile.sample.map((sample) => {
        const labels = Object.fromEntries(sample.label.map((label) => [text(label.key), text(label.str)]));
        return {
            stack: sample.locationId.map(name).reverse(),
            lines: sample.locationId.map(line).reverse(),
            who: `${labels.mpi_rank ?? 0}/${labels.thread}`,
            values: Object.fromEntries(metrics.map((metric, at) => [metric, Number(sample.value[at])])),
        };
    });
    writeFileSync(`${file}.json`, JSON.stringify(samples));
}
